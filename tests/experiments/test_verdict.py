from __future__ import annotations

from pinoise.experiments.results import Line, verdict


def line(method: str, few: float, *flags: str) -> Line:
    return Line("toy", method, {"few": few}, {"few": 0.0}, 1.0, flags)


def test_a_gain_over_raw_features_is_said() -> None:
    assert verdict([line("raw", 80), line("fixed", 82), line("scarf", 85)]) == (
        "On toy, SCARF is the best learned embedding with few labels, 5.0 points above raw features."
    )


def test_the_untrained_encoder_is_no_learned_embedding() -> None:
    assert "SCARF is the best" in verdict([line("raw", 80), line("untrained", 99), line("scarf", 81)])
    assert "nothing was trained" in verdict([line("raw", 80), line("untrained", 99)])


def test_collapsed_noise_is_said_with_where_it_ends() -> None:
    said = verdict([line("raw", 80), line("fixed", 85), line("pinda-paper", 70, "shrink")])
    assert said.endswith(
        "5.0 points above raw features; the learned noise collapsed to almost nothing in PiNDA (paper) (10.0 points "
        "below raw features)."
    )


def test_several_collapsed_noises_are_all_said() -> None:
    said = verdict([line("raw", 80), line("pinda-paper", 70, "shrink"), line("pinda-paper-mean", 81, "shrink")])
    assert said.endswith(
        "; the learned noise collapsed to almost nothing in PiNDA (paper) (10.0 points "
        "below raw features) and PiNDA (paper, μ learned) (1.0 point above raw features)."
    )
