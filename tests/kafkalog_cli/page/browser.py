"""A headless Chromium with its driver, which opens pages and says what they loaded, logged and show."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: What is missing for a browser here, in words; None where all is there.
MISSING = next(
    (f"{name} is not installed" for name in ("chromium", "chromedriver") if shutil.which(name) is None),
    None,
)
_ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000")
_DRAWN_MS = "return document.documentElement.dataset.drawnMs"


class Browser:
    """One window."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path) -> float:
        """Open the page of a report; the seconds from there until all tables and charts are drawn."""
        from selenium.webdriver.support.wait import WebDriverWait

        self.driver.get(page.as_uri())
        return float(WebDriverWait(self.driver, 60).until(lambda _: self.run(_DRAWN_MS))) / 1000

    def run(self, script: str, *arguments: object) -> Any:
        """The value that a script returns."""
        return self.driver.execute_script(script, *arguments)

    def emulate(self, **features: str) -> None:
        """Set media features, such as prefers_color_scheme="dark"."""
        found = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": found})

    def requests(self) -> list[str]:
        """The addresses that were requested since the last call."""
        messages = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """What the console got: errors of scripts, and what the page's own policy refused."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def rows(self, table: str) -> list[list[str]]:
        """The cells of a table as they are shown."""
        script = "return [...document.querySelectorAll(arguments[0])].map(r => [...r.cells].map(c => c.textContent))"
        found: list[list[str]] = self.run(script, f"#t-{table} tbody tr")
        return found

    def filtered_rows(self, table: str, words: str) -> int:
        """How many rows are shown after these words were typed into the filter of a table."""
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support.wait import WebDriverWait

        field = self.driver.find_element(By.CSS_SELECTOR, f"#t-{table} input")
        before = self.run("return document.querySelector(arguments[0]).textContent", f"#t-{table} .count")
        field.send_keys(words)
        WebDriverWait(self.driver, 30).until(
            lambda _: (
                self.run("return document.querySelector(arguments[0]).textContent", f"#t-{table} .count") != before
            )
        )
        return len(self.rows(table))

    def picture(self, path: Path) -> None:
        """The window as a PNG file."""
        self.driver.save_screenshot(str(path))


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser with a profile of its own, closed at the end."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for each in _ARGUMENTS:
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(120)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
