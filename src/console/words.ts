import type { ComponentChildren } from 'preact'
import type { german } from './german.ts'
import { keep, kept } from './kept.ts'

/** A text of the console, in English. What it is in German stands in `german.ts`, and without that it does not compile. */
export type Text = keyof typeof german

export const LANGUAGES = { en: 'English', de: 'Deutsch' } as const
export type Language = keyof typeof LANGUAGES

function isLanguage(name: string | undefined): name is Language {
  return name !== undefined && Object.hasOwn(LANGUAGES, name)
}

function languageOf(browser: readonly string[]): Language {
  const choice = kept('language')
  if (isLanguage(choice)) return choice
  return browser.map((each) => each.slice(0, 2).toLowerCase()).find(isLanguage) ?? 'en'
}

/** The language of the page: the one that was chosen here, or else the browser's. */
export const language: Language = languageOf(navigator.languages)

/** Keeps a choice, and shows the page in it. */
export function speak(choice: Language): void {
  keep('language', choice)
  location.reload()
}

/** Who reads English fetches no other words. */
const words: Readonly<Record<string, string>> = language === 'de' ? (await import('./german.ts')).german : {}

const HOLE = /\{(\w+)\}/

/** A text in the language of the page, with values in its holes: t('{count} events', { count: 3 }). */
export function t(text: Text, values: Readonly<Record<string, string | number>> = {}): string {
  return (words[text] ?? text).replace(/\{(\w+)\}/g, (hole, name: string) => String(values[name] ?? hole))
}

/** The same with elements in its holes. */
export function rich(text: Text, values: Readonly<Record<string, ComponentChildren>>): ComponentChildren[] {
  const parts = (words[text] ?? text).split(HOLE)
  return parts.map((part, index) => (index % 2 === 0 ? part : values[part]))
}
