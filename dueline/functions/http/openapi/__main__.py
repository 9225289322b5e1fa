"""Write docs/openapi.json: `python -m functions.http.openapi`."""

from dueline.functions.http.openapi.document import PATH, text

if __name__ == "__main__":
    PATH.write_text(text())
