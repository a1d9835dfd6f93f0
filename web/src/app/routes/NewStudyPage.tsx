import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { Button } from "@/components/Button";
import { Empty, Loading, Problem } from "@/components/Message";
import { SelectField } from "@/components/Field";
import { componentQuery, componentsQuery } from "@/features/components/api";
import { galleryQuery } from "@/features/gallery/api";
import { keyOf } from "@/features/gallery/entries";
import { cloneQuery, freeNameQuery } from "@/features/planning/api";
import { keepDraft, keptDraft, sourceOf, useDraft } from "@/features/planning/useDraft";
import { SampleData } from "@/features/planning/SampleData";
import { StudyForm } from "@/features/planning/StudyForm";
import { edit } from "@/features/planning/studyFile";
import { textOf } from "@/lib/values";
import { studiesQuery } from "@/features/studies/api";
import { useTitle } from "@/lib/browser";
import styles from "./pages.module.css";

const route = getRouteApi("/signed-in/new");

function firstFile(): string {
  // eslint-disable-next-line lingui/no-unlocalized-strings -- the rest is a file
  return `# ${t`A study file, as the command line reads it.`}
objectives: [{minimize: seconds, unit: s}]
budget: {max_trials: 50}
`;
}

export function NewStudyPage() {
  useTitle(t`New study`);
  const { clone, component, gallery } = route.useSearch();
  const navigate = route.useNavigate();
  const earlier = useInfiniteQuery({ ...studiesQuery({ sort: "-updated" }, 100), refetchInterval: false });
  const studies = earlier.data?.pages[0]?.studies ?? [];
  return (
    <>
      <div className={styles.head}>
        <h1>{clone === undefined ? t`New study` : t`New study based on ${clone}`}</h1>
        <div className={styles.begin}>
          <SampleData onOpen={(name) => void navigate({ to: "/studies/$name", params: { name } })} />
          {studies.length === 0 ? null : (
            <SelectField bare label={t`Clone a study`} value={clone ?? ""} onChange={(event) => void navigate({ search: event.target.value === "" ? {} : { clone: event.target.value } })}>
              <option value="">{t`Clone a study …`}</option>
              {clone === undefined || studies.some(({ name }) => name === clone) ? null : <option>{clone}</option>}
              {studies.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </SelectField>
          )}
        </div>
      </div>
      <p className={styles.soft}>
        <Trans>
          Or <Link to="/batch-script">tune a batch script</Link> for sbatch by jobs of your own, without an agent.
        </Trans>
      </p>
      {gallery !== undefined ? <FromGallery key={gallery} entry={gallery} /> : clone === undefined ? <Begun key={component ?? ""} component={component} /> : <Cloned key={clone} of={clone} />}
    </>
  );
}

/** A file with what is known at the beginning: of a component, its first metric. */
function Begun({ component }: { component: string | undefined }) {
  const { data, error, refetch } = useQuery(componentsQuery);
  if (data === undefined) return error === null ? <Loading what={t`components`} /> : <Problem error={error} again={() => void refetch()} />;
  if (component === undefined) return <Kept source={sourceOf("component")} text={firstFile()} />;
  const metric = data.components.find(({ name }) => name === component)?.versions[0]?.metrics[0];
  const text = edit(firstFile(), ["component"], component);
  return <Kept source={sourceOf("component", component)} text={metric === undefined ? text : edit(text, ["objectives"], [{ minimize: metric }])} />;
}

/** The study file of an entry of the gallery, under the name of its component, or the next free one. */
function FromGallery({ entry }: { entry: string }) {
  const gallery = useQuery(galleryQuery);
  const found = gallery.data?.entries.find((one) => keyOf(one) === entry);
  const name = useQuery({ ...freeNameQuery(found?.component ?? ""), enabled: found !== undefined });
  const error = gallery.error ?? name.error;
  if (error !== null) return <Problem error={error} again={() => void Promise.all([gallery.refetch(), name.refetch()])} />;
  if (gallery.data !== undefined && found === undefined) return <Empty title={t`The gallery has no study ${entry}`} />;
  if (found === undefined || name.data === undefined) return <Loading what={t`the study file`} />;
  return <Kept source={sourceOf("gallery", entry)} text={edit(found.text, ["name"], name.data)} />;
}

function Cloned({ of }: { of: string }) {
  const { data, error, refetch } = useQuery(cloneQuery(of));
  if (data === undefined) return error === null ? <Loading what={of} /> : <Problem error={error} again={() => void refetch()} />;
  return <Kept source={sourceOf("clone", of)} text={edit(data.text, ["name"], data.name)} tags={data.study.tags.join(", ")} />;
}

interface Source {
  /** The key under which the tab keeps the draft. */
  source: string;
  text: string;
  tags?: string;
}

/** Continue the draft that a reload or another page has interrupted, or begin a new one. */
function Kept({ source, text, tags = "" }: Source) {
  const [kept, setKept] = useState(() => keptDraft(source));
  return (
    <>
      {kept === null ? null : (
        <p className={styles.soft} role="note">
          {t`This is your draft from before.`}{" "}
          <Button
            small
            onClick={() => {
              keepDraft(source, null);
              setKept(null);
            }}
          >
            {t`Start over`}
          </Button>
        </p>
      )}
      <Written key={kept === null ? "new" : "kept"} source={source} text={kept?.text ?? text} tags={kept?.tags ?? tags} />
    </>
  );
}

function Written({ source, text, tags: firstTags = "" }: Source) {
  const draft = useDraft(text);
  const [tags, setTags] = useState(firstTags);
  const created = useRef(false);
  const { step = "what" } = route.useSearch();
  const navigate = route.useNavigate();
  useEffect(() => {
    if (!created.current && (draft.text !== text || tags !== firstTags)) keepDraft(source, { text: draft.text, tags });
  }, [source, draft.text, text, tags, firstTags]);
  const components = useQuery(componentsQuery);
  const name = textOf(draft.file.component);
  const detail = useQuery({ ...componentQuery(name), enabled: name !== "", retry: false });
  const digest = textOf(draft.file.digest);
  const versions = name === "" ? [] : (detail.data?.versions ?? []);
  const version = versions.find((one) => one.digest === digest) ?? versions[0];
  if (components.data === undefined) {
    return components.error === null ? <Loading what={t`components`} /> : <Problem error={components.error} again={() => void components.refetch()} />;
  }
  return (
    <>
      {components.data.components.length === 0 ? (
        <p className={styles.soft}>
          <Trans>No agent offers a component yet. This study therefore needs a script of yours that measures its trials. <Link to="/agents">Enrol an agent</Link> to run trials automatically.</Trans>
        </p>
      ) : null}
      <StudyForm
        draft={draft}
        tags={tags}
        onTags={setTags}
        step={step}
        onStep={(next) => void navigate({ search: (before) => ({ ...before, step: next }), resetScroll: false })}
        components={components.data.components}
        space={name !== "" && detail.isPending ? undefined : version?.space}
        metrics={version?.metrics ?? []}
        onComponent={(chosen) => {
          const offered = components.data.components.find((one) => one.name === chosen)?.versions[0];
          const metric = offered?.metrics[0];
          // Parameters, applications, metrics and earlier studies are another component's.
          draft.setAll([
            [["component"], chosen === "" ? undefined : chosen],
            [["application"], undefined],
            [["digest"], undefined],
            [["parameters"], undefined],
            [["only"], undefined],
            [["constraints"], undefined],
            [["start_from"], undefined],
            ...(metric === undefined ? [] : [[["objectives"], [{ minimize: metric }]] as const]),
          ]);
        }}
        onCreated={(made) => {
          created.current = true;
          keepDraft(source, null);
          void navigate({ to: "/studies/$name", params: { name: made } });
        }}
      />
    </>
  );
}
