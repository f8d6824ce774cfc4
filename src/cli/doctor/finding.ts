import type { Config } from '../../config/schema.ts'
import type { GuardedClient } from '../../outbound/http.ts'
import type { Names } from '../../outbound/names.ts'

/** What there is to examine, and by which means. */
export interface Examination {
  readonly config: Config
  /** May call every address: whether others may reach it is for the examination to find out. */
  readonly client: GuardedClient
  readonly names: Names
  readonly now: () => number
}

export type Verdict = 'ok' | 'warning' | 'problem' | 'skipped'

export interface Finding {
  readonly verdict: Verdict
  /** What was looked at, in a word or two. */
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

/** Whether this server is only being tried out on one machine, where nobody looks for it. */
export function isTrial({ server_name }: Config): boolean {
  return /^(?:localhost|127\.[\d.]+|\[::1\])(?::\d+)?$/.test(server_name)
}
