/** Stands between texts of events that are read as one. Canonical JSON has no line breaks. */
export const BETWEEN_TEXTS = '\n'

/** The texts that were joined, which stay parts of the long one. Throws if they are not so many. */
export function splitTexts(roomNid: number, texts: string, count: number): string[] {
  const found = texts.split(BETWEEN_TEXTS)
  if (found.length !== count) throw new Error(`room ${roomNid}: an event is not canonical JSON`)
  return found
}
