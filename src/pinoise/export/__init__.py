"""A fitted embedding or its noise as one ONNX file, for programs without torch or pinoise.

``graph`` is what the file computes, as torch modules; ``file`` writes it, and keeps it only if ``check`` finds that
onnxruntime computes the same. Nothing here imports onnx until a file is written.
"""

from pinoise.export.check import What
from pinoise.export.file import write_onnx
