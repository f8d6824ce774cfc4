import type { Logger } from 'pino'
import type { LiveConfig } from '../../config/live.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { LiveServerPolicy } from '../../core/server-policy.ts'
import { startProblems } from './start-problems.ts'

export interface ReloadParts {
  readonly live: LiveConfig
  readonly policy: LiveServerPolicy
  readonly log: Logger
  /** @throws ConfigError */
  read(): LoadedConfig
  /** Told whether what was read is in force. */
  done(isGood: boolean): void
}

/**
 * Reads the configuration again and takes over all that counts without a restart: all of it, or, if there is a mistake anywhere, nothing.
 * The log says which options changed, and which of them wait for a restart.
 */
export async function reloadConfig({ live, policy, log, read, done }: ReloadParts): Promise<void> {
  try {
    const loaded = read()
    const [problem] = await startProblems(loaded)
    if (problem !== undefined) throw new Error(`${problem.origin}: ${problem.message}`)
    const { applied, needRestart } = live.use(loaded.config)
    const { federation, log: logging } = live.config
    policy.use(federation)
    log.level = logging.level
    log.info({ applied, needs_restart: needRestart }, said(applied.length, needRestart.length))
    done(true)
  } catch (error) {
    log.error({ reason: (error as Error).message }, 'the configuration is wrong; what was in force stays so')
    done(false)
  }
}

function said(applied: number, needRestart: number): string {
  if (applied + needRestart === 0) return 'the configuration was read again; nothing is different'
  const rest = needRestart === 0 ? '' : '; the options in needs_restart change at the next start'
  return `the configuration was read again${rest}`
}
