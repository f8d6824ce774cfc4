import { preferredLanguages } from '../../core/languages.ts'
import type { PageName } from '../../domain/page-rules.ts'
import { type PageLook, type PageValues, sourceOf } from '../../domain/pages.ts'
import type { Services } from '../../domain/services.ts'
import { type RawReply, rawReply } from '../../http/endpoint.ts'

/** Options of a page beside its words. */
export interface PageOptions extends Omit<PageLook, 'languages'> {
  readonly status?: number | undefined
  /** As the browser sent it. */
  readonly acceptLanguage: string | undefined
  /** Origins that its scripts, styles and frames may come from. */
  readonly vendor?: readonly string[] | undefined
  /** Origins to which a form may lead after it was sent here. */
  readonly formTargets?: readonly string[] | undefined
  /** Cookies to set. */
  readonly cookies?: readonly string[] | undefined
  /** Whether it shows pictures of this server. */
  readonly hasImages?: true
  /** Whether no cache may keep the page, because its address or text may contain a secret. */
  readonly isSecret?: true
}

/** The Content-Security-Policy of a page: it may load, run and frame only its own parts, which are listed by their hashes or origins. */
function policyOf(
  styles: readonly string[],
  hasForm: boolean,
  { script, vendor = [], formTargets = [], hasImages }: PageOptions,
): string {
  const scripts = [...(script === undefined ? [] : [sourceOf(script)]), ...vendor]
  const directives: [name: string, sources: readonly string[]][] = [
    ['default-src', []],
    ['style-src', [...styles, ...vendor]],
    ['script-src', scripts],
    ['img-src', hasImages ? ["'self'"] : []],
    ['frame-src', vendor],
    ['connect-src', vendor],
    ['base-uri', []],
    ['form-action', hasForm ? ["'self'", ...formTargets] : []],
    ['frame-ancestors', []],
  ]
  return directives
    .filter(([name, sources]) => sources.length > 0 || !/^(?:script|img|frame|connect)-src$/.test(name))
    .map(([name, sources]) => `${name} ${sources.length === 0 ? "'none'" : sources.join(' ')}`)
    .join('; ')
}

/** The answer with a page, in the language of the browser. */
export function pageReply<Name extends PageName>(
  { pages }: Pick<Services, 'pages'>,
  name: Name,
  values: PageValues<Name>,
  options: PageOptions,
): RawReply {
  const { status = 200, acceptLanguage, isSecret, cookies = [] } = options
  const { html, styles } = pages.render(name, values, { ...options, languages: preferredLanguages(acceptLanguage) })
  return rawReply({
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policyOf(styles, 'form' in values, options),
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cache-control': isSecret ? 'no-store' : 'no-cache',
      vary: 'accept-language',
      ...(cookies.length > 0 && { 'set-cookie': [...cookies] }),
    },
    body: html,
  })
}
