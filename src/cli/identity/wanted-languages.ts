import { preferredLanguages } from '../../core/languages.ts'
import { UsageError } from '../command.ts'

/** The languages of `--language`, of which there has to be one: nobody asks for a language to see another. */
export function wantedLanguages(language: string | undefined, known: readonly string[]): string[] {
  const wanted = preferredLanguages(language)
  if (language === undefined || wanted.some((each) => known.includes(each))) return wanted
  throw new UsageError(`there are no templates in "${language}"; there are some in ${known.join(', ')}`)
}
