/** What the browser may keep: which language was chosen, and for its tab, where in the console somebody was. Nothing else. */
const NAMES = { language: 'hearth-console-language', place: 'hearth-console-place' } as const

const storeOf = (what: keyof typeof NAMES): Storage => (what === 'place' ? sessionStorage : localStorage)

/** A browser may refuse to keep anything: then there is nothing. */
export function kept(what: keyof typeof NAMES): string | undefined {
  try {
    return storeOf(what).getItem(NAMES[what]) ?? undefined
  } catch {
    return undefined
  }
}

/** Keeps a text, or with undefined no text any more. */
export function keep(what: keyof typeof NAMES, text: string | undefined): void {
  try {
    if (text === undefined) storeOf(what).removeItem(NAMES[what])
    else storeOf(what).setItem(NAMES[what], text)
  } catch {
    // It refuses, and the page does without.
  }
}
