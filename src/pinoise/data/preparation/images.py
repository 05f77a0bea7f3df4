"""What must be remembered of a folder of training images so that later ones are read the same way."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from pinoise.data.dataset import Dataset
from pinoise.data.images.options import Color, Corrupt, ImageOptions
from pinoise.data.images.reading import FolderContent
from pinoise.data.preparation.arrays import ArrayPreparation, learn_arrays
from pinoise.data.preparation.labels import LabelEncoding
from pinoise.errors import UserError


@dataclass(frozen=True)
class ImagePreparation:
    """The shape of an image and the names of classes; arrays of such images can be read too."""

    arrays: ArrayPreparation
    corrupt: Corrupt

    @property
    def shape(self) -> tuple[int, ...]:
        """Height and width, and 3 if images have colour."""
        return self.arrays.shape

    @property
    def labels(self) -> LabelEncoding | None:
        """The classes, None without any."""
        return self.arrays.labels

    @property
    def options(self) -> ImageOptions:
        """How the files of a later folder are read: all are brought to the size of the training images."""
        color: Color = "gray" if len(self.shape) == 2 else "rgb"
        height, width = self.shape[:2]
        return ImageOptions((height, width), color, self.corrupt)

    def apply(
        self, content: FolderContent, *, name: str, labelled: bool = True, own_classes: bool = False, where: str
    ) -> Dataset:
        """Return a later folder as a data set like the training one; labels may be absent or left unread.

        With ``own_classes`` folders that training did not have are classes too.
        """
        data = self.arrays.apply(content.raw, name=name, labelled=labelled, own_classes=own_classes, where=where)
        return replace(data, notes=content.notes)

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON can hold and ``from_json`` turns back into the same preparation."""
        return {"kind": "images", **asdict(self)}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> ImagePreparation:
        """Return the preparation that ``to_json`` wrote; anything else is an error."""
        try:
            checked = ImageOptions.checked(corrupt=stored["corrupt"])
            return cls(ArrayPreparation.from_json(stored["arrays"]), checked.corrupt)
        except (KeyError, TypeError) as error:
            raise UserError(f"the stored image preparation is damaged or of another version: {error!r}.") from error


def learn_images(
    content: FolderContent, options: ImageOptions, *, name: str, where: str
) -> tuple[Dataset, ImagePreparation]:
    """Number the classes of a folder, and return it with what later folders need to be read the same way."""
    train, test = content.raw.train.y, None if content.raw.test is None else content.raw.test.y
    if train is not None:
        classes = set(train.tolist())
        if len(classes) == 1:
            raise UserError(
                f"{where} has a single class folder, {str(train[0])!r}, but classes need two or more: give that folder "
                "itself to learn without labels."
            )
        strange = sorted(set(test.tolist()) - classes) if test is not None else []
        if strange:
            raise UserError(
                f"{where}: the test part has the class folder {strange[0]!r}, which training does not have."
            )
    data, arrays = learn_arrays(content.raw, name=name, where=where)
    preparation = ImagePreparation(arrays, corrupt=options.corrupt)
    return replace(data, notes=content.notes), preparation
