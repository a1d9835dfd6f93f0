// Run before each file of tests: the texts are those of the code itself, in English.
import { i18n } from "@lingui/core";

i18n.loadAndActivate({ locale: "en", messages: {} });
