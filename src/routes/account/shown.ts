import { preferredLanguages } from '../../core/languages.ts'
import type { Medium } from '../../core/threepid.ts'

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

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

/** A size, in the reader's language. */
export function shownBytes(bytes: number, { acceptLanguage }: { readonly acceptLanguage: string | undefined }): string {
  const [language = 'en'] = preferredLanguages(acceptLanguage)
  const step = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  const value = bytes / 1000 ** step
  try {
    return `${new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(value)} ${UNITS[step]}`
  } catch {
    return `${value.toFixed(1)} ${UNITS[step]}`
  }
}

/** An address as people write it: numbers are kept without their plus. */
export function shownAddress({ medium, address }: { readonly medium: Medium; readonly address: string }): string {
  return medium === 'msisdn' ? `+${address}` : address
}
