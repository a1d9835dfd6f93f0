export function NewStudyPage() {
  return null;
}
