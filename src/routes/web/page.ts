import { preferredLanguages } from '../../core/languages.ts'
import type { PageName } from '../../domain/page-rules.ts'
import { type PageLook, type PageValues, sourceOf } from '../../domain/pages.ts'
import type { Services } from '../../domain/services.ts'
import { type RawReply, rawReply } from '../../http/endpoint.ts'

/** What a page is besides its words. */
export interface PageOptions extends Omit<PageLook, 'languages'> {
  readonly status?: number | undefined
  /** As the browser sent it. */
  readonly acceptLanguage: string | undefined
  /** Origins that its scripts, styles and frames may come from. */
  readonly vendor?: readonly string[] | undefined
  /** Whether nobody keeps it, since its address or its text may hold a secret. */
  readonly isSecret?: true
}

/** Nothing may be loaded, run or framed but what the page says; styles and scripts of its own are named by their hash. */
function policyOf(styles: readonly string[], hasForm: boolean, { script, vendor = [] }: PageOptions): string {
  const scripts = [...(script === undefined ? [] : [sourceOf(script)]), ...vendor]
  const directives: [name: string, sources: readonly string[]][] = [
    ['default-src', []],
    ['style-src', [...styles, ...vendor]],
    ['script-src', scripts],
    ['frame-src', vendor],
    ['connect-src', vendor],
    ['base-uri', []],
    ['form-action', hasForm ? ["'self'"] : []],
    ['frame-ancestors', []],
  ]
  return directives
    .filter(([name, sources]) => sources.length > 0 || !/^(?:script|frame|connect)-src$/.test(name))
    .map(([name, sources]) => `${name} ${sources.length === 0 ? "'none'" : sources.join(' ')}`)
    .join('; ')
}

/** A page for people as an answer, in the language that they want. */
export function pageReply<Name extends PageName>(
  { pages }: Pick<Services, 'pages'>,
  name: Name,
  values: PageValues<Name>,
  options: PageOptions,
): RawReply {
  const { status = 200, acceptLanguage, isSecret } = options
  const { html, styles } = pages.render(name, values, { ...options, languages: preferredLanguages(acceptLanguage) })
  return rawReply({
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policyOf(styles, 'form' in values, options),
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': isSecret ? 'no-store' : 'no-cache',
      vary: 'accept-language',
    },
    body: html,
  })
}
