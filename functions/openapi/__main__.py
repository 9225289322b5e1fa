"""Write docs/openapi.json: `python -m functions.openapi`."""

from functions.openapi.document import PATH, text

if __name__ == "__main__":
    PATH.write_text(text())
