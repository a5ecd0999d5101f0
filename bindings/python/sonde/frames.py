"""Rows as pandas frames, where pandas is installed."""


def frame(rows):
    """A pandas.DataFrame of dicts. ImportError says so where pandas is absent; the dicts themselves need nothing."""
    try:
        import pandas
    except ImportError as missing:
        raise ImportError("frames need pandas, which is not installed; the same rows are there as dicts") from missing
    return pandas.DataFrame(list(rows))
