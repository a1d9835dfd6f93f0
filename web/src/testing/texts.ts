// Runs before each test file: activates the English texts of the code itself.
import { i18n } from "@lingui/core";

i18n.loadAndActivate({ locale: "en", messages: {} });
