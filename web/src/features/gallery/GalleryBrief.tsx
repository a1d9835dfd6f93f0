import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { galleryQuery, inLanguage } from "./api";
import { gainText, keyOf, type Entry } from "./entries";
import styles from "./Gallery.module.css";

/** All systems of the gallery in short. `link` leads to one of them and has the given content. */
export function GalleryBrief({ link }: { link: (entry: Entry, content: ReactNode) => ReactNode }) {
  const { data } = useQuery(galleryQuery);
  return (
    <ul className={styles.brief}>
      {data?.entries.map((entry) => (
        <li key={keyOf(entry)}>
          {link(
            entry,
            <>
              {inLanguage(entry.runs)}
              <span>{gainText(entry)}</span>
            </>,
          )}
        </li>
      ))}
    </ul>
  );
}
