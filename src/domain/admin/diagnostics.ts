import { ProtocolError } from '../../core/errors.ts'

/** What the process knows of itself that no table holds. */
export interface Diagnostics {
  /** The newest warnings and errors of the log, without anything that may be somebody's. */
  recentErrors(): readonly object[]
  /** What a restart would change: the options whose value in force is not the one that the configuration has now. Secrets are masked. */
  configChanges(): readonly ConfigDifference[]
  /** The options in force that do not have their default, secrets masked. */
  configInForce(): readonly { readonly key: string; readonly value: unknown }[]
  /** All metrics, in the text format of Prometheus. */
  metrics(): Promise<string>
}

export interface ConfigDifference {
  readonly key: string
  readonly running: unknown
  readonly configured: unknown
  readonly needs_restart: boolean
}

/** For a process that serves only one command. */
export const NO_DIAGNOSTICS: Diagnostics = {
  recentErrors: notRunning,
  configChanges: notRunning,
  configInForce: notRunning,
  metrics: notRunning,
}

function notRunning(): never {
  throw new ProtocolError('M_NOT_FOUND', 'No server runs, so there is nothing to see of one.')
}
