"""A headless Chromium, as Debian packages it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.waiting import HANG_SECONDS

# Without windows, a page costs a quarter less. Its command on the PATH is a script, which would outlive the driver.
_WINDOWLESS = shutil.which("chromium-headless-shell", path="/usr/lib/chromium")
BROWSER, DRIVER = _WINDOWLESS or shutil.which("chromium"), shutil.which("chromedriver")
# Set where a test may not be skipped for want of a browser, as in CI.
NEEDED = "DUELINE_NEEDS_CHROMIUM"
WIDE, TELEPHONE = (1280, 900), (360, 740)
ZONE = "Europe/Berlin"
_SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    # What costs as much as a view of the page, each time that one is opened.
    "--disable-features=BackForwardCache,CertificateTransparencyComponentUpdater,GlobalMediaControls,MediaRouter,"
    "OptimizationHints,SpareRendererForSitePerProcess,Translate,WebUIOmniboxAimPopup,"
    "WebUIOmniboxFullPopup,WebUIOmniboxPopup",
    "--no-first-run",
    "--lang=en-GB",
    "--hide-scrollbars",
)


def skip_without_chromium() -> None:
    """Skip where there is no Chromium; fail there if one is needed."""
    if BROWSER is None or DRIVER is None:
        reason = "no chromium or no chromedriver on the PATH: `apt-get install chromium chromium-driver` brings both"
        (pytest.fail if os.environ.get(NEEDED) == "1" else pytest.skip)(reason)


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """Run a browser while the context is open: in the light, in Berlin, at a screen's width."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for switch in _SWITCHES:
        options.add_argument(switch)
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        driver.set_page_load_timeout(HANG_SECONDS)
        driver.set_script_timeout(HANG_SECONDS)
        driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ZONE})
        resize(driver, WIDE)
        yield driver
    finally:
        driver.quit()


# What a page does of its own once its size has changed, such as to draw a chart again, it does with the next frame.
DRAWN = """
    const [width, done] = arguments;
    const draw = () => requestAnimationFrame(innerWidth === width ? () => requestAnimationFrame(() => done()) : draw);
    draw();
"""


def resize(driver: webdriver.Chrome, size: tuple[int, int]) -> None:
    """Show pages as a screen of that width and height does, and wait until the one that is open has been drawn so.

    No window of a desktop is as narrow as a telephone.
    """
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.execute_async_script(DRAWN, width)


def prefer(driver: webdriver.Chrome, scheme: str) -> None:
    """Show pages as to someone who prefers this colour scheme, `light` or `dark`."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
