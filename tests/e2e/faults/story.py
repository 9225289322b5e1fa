"""What is told at the end of a story: what it promised and did not keep, figures, and what explains them."""

from dataclasses import dataclass, field
from typing import Any

from rich.table import Table


@dataclass(kw_only=True, slots=True)
class Story:
    """How a story ended: `complaints` are the promises that were not kept, one a line; `told` is the way there."""

    complaints: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    told: str = ""

    def expect(self, holds: object, complaint: str) -> None:
        """Complain unless something holds."""
        if not holds:
            self.complaints.append(complaint)

    def __str__(self) -> str:
        figures = "\n".join(f"{name}: {figure}" for name, figure in self.figures.items())
        return "\n".join([*self.complaints, "", figures, "", self.told])


def table_of(story: Story) -> Table:
    """Return the figures of a story as a table."""
    table = Table("what", "figure")
    for what, figure in story.figures.items():
        told = "\n".join(f"{k}: {v}" for k, v in figure.items()) if isinstance(figure, dict) else str(figure)
        table.add_row(what, told)
    return table
