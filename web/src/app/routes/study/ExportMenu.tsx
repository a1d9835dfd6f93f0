import { t } from "@lingui/core/macro";
import { Link } from "@tanstack/react-router";
import { Button } from "@/components/Button";
import { Popover } from "@/components/Popover";
import type { Study } from "@/lib/api/client";
import styles from "../pages.module.css";

/** A menu that downloads the study's data or opens its report. */
export function ExportMenu({ study }: { study: Study }) {
  const at = `/api/v1/studies/${encodeURIComponent(study.name)}`;
  return (
    <Popover label={t`Export`} trigger={<Button>{t`Export`}</Button>}>
      <ul className={styles.menu}>
        <li>
          <a href={`${at}/trials.csv`} download>
            {t`Trials as CSV`}
          </a>
        </li>
        <li>
          <a href={`${at}/trials.json`} download>
            {t`Study and trials as JSON`}
          </a>
        </li>
        <li>
          <a href={`${at}/verdict.csv`} download>
            {t`Verdict as CSV`}
          </a>
        </li>
        <li>
          <Link to="/studies/$name/report" params={{ name: study.name }}>
            {t`Printable report`}
          </Link>
        </li>
        <li className={styles.soft}>{t`To save a plot as SVG, use the button in its corner.`}</li>
      </ul>
    </Popover>
  );
}
