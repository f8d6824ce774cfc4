import { preferredLanguages } from '../../core/languages.ts'
import { UsageError } from '../command.ts'

/** The languages of `--language`. Throws if there are templates in none of them: a preview in another language would mislead. */
export function wantedLanguages(language: string | undefined, known: readonly string[]): string[] {
  const wanted = preferredLanguages(language)
  if (language === undefined || wanted.some((each) => known.includes(each))) return wanted
  throw new UsageError(`there are no templates in "${language}"; there are some in ${known.join(', ')}`)
}
