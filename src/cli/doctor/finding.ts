import type { Config } from '../../config/schema.ts'
import type { GuardedClient } from '../../outbound/http.ts'
import type { Names } from '../../outbound/names.ts'

/** The input of an examination. */
export interface Examination {
  readonly config: Config
  /** May call every address, private ones too: the examination itself checks whether others can reach them. */
  readonly client: GuardedClient
  readonly names: Names
  readonly now: () => number
}

export type Verdict = 'ok' | 'warning' | 'problem' | 'skipped'

export interface Finding {
  readonly verdict: Verdict
  /** The examined thing, in a word or two. */
  readonly subject: string
  readonly text: string
  /** What to do; with every warning and problem. */
  readonly advice?: string
}

export interface Section {
  readonly title: string
  readonly findings: readonly Finding[]
}

export const ok = (subject: string, text: string): Finding => ({ verdict: 'ok', subject, text })
export const skipped = (subject: string, text: string): Finding => ({ verdict: 'skipped', subject, text })
export const warning = (subject: string, text: string, advice: string): Finding => ({
  ...{ verdict: 'warning', subject, text, advice },
})
export const problem = (subject: string, text: string, advice: string): Finding => ({
  ...{ verdict: 'problem', subject, text, advice },
})

/** Whether this server is only a trial on one machine, without a public name. */
export function isTrial({ server_name }: Config): boolean {
  return /^(?:localhost|127\.[\d.]+|\[::1\])(?::\d+)?$/.test(server_name)
}
