"""Catalog of the paper's real data sets: columns, origin, download address and checksums."""

from __future__ import annotations

from dataclasses import dataclass


class DatasetError(ValueError):
    """The data set is unknown, damaged, changed at its source, or unreachable."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """One data set; the target is the last column, units and row order are the original ones."""

    name: str
    title: str
    n_rows: int
    columns: tuple[str, ...]
    """Names of the features, then of the target."""
    origin: str
    """Publication, as shown to users."""
    url: str
    file_format: str
    """Format of the download, a key of `dsfr.paper.datasets.downloads.READERS`."""
    file_sha256: str
    """Checksum of the file ``<name>.csv.gz`` in ``DSFR_DATA_HOME``."""
    values_sha256: str
    """Checksum of the values as little-endian doubles, row by row, whatever the file format."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.columns) - 1


CATALOG = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            "airfoil",
            "Airfoil self-noise",
            1503,
            (
                *("frequency", "attack-angle", "chord-length", "free-stream-velocity"),
                *("suction-side-displacement-thickness", "scaled-sound-pressure"),
            ),
            "UCI 291, doi 10.24432/C5VW2C, CC BY 4.0",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/00291/airfoil_self_noise.dat",
            "text",
            "d9de506bb9b3c328a956dd84156f9c7c53dc42a9afc19f772cd9f8f0013f4276",
            "11fab2c660f61031935f9995d27929df39a175d3551271b397c8aa254b19b6b6",
        ),
        Dataset(
            "wmsl",
            "WarCraft master skill level (SkillCraft1)",
            3338,
            (
                *("Age", "HoursPerWeek", "TotalHours", "APM", "SelectByHotkeys", "AssignToHotkeys", "UniqueHotkeys"),
                *("MinimapAttacks", "MinimapRightClicks", "NumberOfPACs", "GapBetweenPACs", "ActionLatency"),
                *("ActionsInPAC", "TotalMapExplored", "WorkersMade", "UniqueUnitsMade", "ComplexUnitsMade"),
                *("ComplexAbilitiesUsed", "LeagueIndex"),
            ),
            "UCI 272, doi 10.24432/C5161N, CC BY 4.0; rows with '?' left out",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/00272/SkillCraft1_Dataset.csv",
            "csv",
            "588e104cd738656ff6ce247160d414d3dbd33b68d5c6fe2fa73abb8478b89d5b",
            "ced726c067f7942e1a01a917386e2e35ebcd3c112b678b9e81954ac4a31307d8",
        ),
        Dataset(
            "ccpp",
            "Combined cycle power plant",
            9568,
            ("AT", "V", "AP", "RH", "PE"),
            "UCI 294, doi 10.24432/C5002N, CC BY 4.0; first sheet",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/00294/CCPP.zip",
            "xlsx",
            "855a8ffb9cfd610f0467b11880f8ed7fbab5eccf280a190491d990e23627cbf2",
            "99a3e1a8b4d8640155030577f49c00789d0d390e4e5b4cd8e28f1a6a288abab2",
        ),
        Dataset(
            "ch",
            "California housing",
            20640,
            (
                *("longitude", "latitude", "housing_median_age", "total_rooms", "total_bedrooms", "population"),
                *("households", "median_income", "median_house_value"),
            ),
            "StatLib cal_housing (also OpenML 44977), no explicit licence",
            "https://ndownloader.figshare.com/files/5976036",
            "tgz",
            "bce36e04658a0047d84023fee547b5c03f28408b10c98bd48c66f98e8c12ba54",
            "a2f4f55ff91c67e60391318ea4d61d247d09f8fef119ec6f44a1eb727d7f1f7b",
        ),
        Dataset(
            "kch",
            "King County house sales",
            21613,
            (
                *("bedrooms", "bathrooms", "sqft_living", "sqft_lot", "floors", "waterfront", "view", "condition"),
                *("grade", "sqft_above", "sqft_basement", "yr_built", "yr_renovated", "sqft_living15", "sqft_lot15"),
                "price",
            ),
            "Kaggle house sales in King County (OpenML 42731), CC0",
            "https://www.openml.org/api/v1/json/data/42731",
            "openml",
            "bc240881a8e1c9d6fb8d8144feed74d8248490affcb50c8d00903858f8505b5a",
            "6b5645327cc136bba5fe1f94619ddf46b844dbf226fd04bccc83c88262b9118f",
        ),
    )
}
"""Data sets by name, in the order of the paper's Table I."""
