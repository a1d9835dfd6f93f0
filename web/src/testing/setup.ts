// Runs before each test file: activates the English texts of the code itself, and replaces what Node.js and jsdom lack.
import { i18n } from "@lingui/core";

i18n.loadAndActivate({ locale: "en", messages: {} });
globalThis.matchMedia = () => Object.assign(new EventTarget(), { matches: false }) as MediaQueryList;
