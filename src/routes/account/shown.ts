import { preferredLanguages } from '../../core/languages.ts'

/** A moment, in the reader's language: the server's time zone is not theirs, so it is said with the time. */
export function shownTime(ms: number, { acceptLanguage }: { readonly acceptLanguage: string | undefined }): string {
  const [language = 'en'] = preferredLanguages(acceptLanguage)
  const options = { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' } as const
  try {
    return `${new Intl.DateTimeFormat(language, options).format(ms)} UTC`
  } catch {
    return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
  }
}
