# SPDX-License-Identifier: GPL-2.0-only
"""A browser that is driven by chromedriver."""

import base64

from selenium import webdriver
from selenium.webdriver.chromium.remote_connection import ChromiumRemoteConnection

ARGUMENTS = "--headless=new", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--disable-dev-shm-usage"


class Browser:
    def __init__(self, port):
        options = webdriver.ChromeOptions()
        for argument in ARGUMENTS:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        connection = ChromiumRemoteConnection(f"http://127.0.0.1:{port}", "goog", "chrome")
        self.driver = webdriver.Remote(connection, options=options)
        self.size(1440, 900)

    def quit(self):
        self.driver.quit()

    def cdp(self, command, **parameters):
        """A command of the browser's protocol for developers."""
        return self.driver.execute("executeCdpCommand", {"cmd": command, "params": parameters})["value"]

    def size(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, **features):
        """prefers-…: dark, reduce."""
        self.cdp("Emulation.setEmulatedMedia",
                 features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def open(self, url):
        self.driver.get(url)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def run_async(self, script):
        """The value of a promise."""
        self.driver.set_script_timeout(60)
        found = self.driver.execute_async_script(
            f"const done = arguments[0]; ({script}).then(v => done([v]), e => done(String(e)))")
        assert isinstance(found, list), found
        return found[0]

    def text(self, selector="body"):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def all_text(self, selector="body"):
        """Also what is not visible."""
        return self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def width_of_content(self):
        return self.run("return document.documentElement.scrollWidth")

    def picture(self, path):
        """The whole page."""
        size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                        clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
        path.write_bytes(base64.b64decode(shot["data"]))
