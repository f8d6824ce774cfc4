import { configDifferences, ownValues } from '../../config/difference.ts'
import type { LiveConfig } from '../../config/live.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { Diagnostics } from '../../domain/admin/diagnostics.ts'
import type { Metrics } from '../../domain/metrics.ts'
import type { ServerLog } from './log.ts'

/** What operators are shown of the running server. */
export function diagnosticsOf(parts: {
  readonly live: LiveConfig
  readonly serverLog: ServerLog
  readonly metrics: Metrics
  read(): LoadedConfig
}): Diagnostics {
  const { live, serverLog, metrics, read } = parts

  function configured(): LoadedConfig {
    try {
      return read()
    } catch (error) {
      const message = `A restart would fail, because the configuration is wrong: ${(error as Error).message}`
      throw new ProtocolError('M_UNKNOWN', message, { status: 409 })
    }
  }

  return {
    recentErrors: serverLog.recent.list,
    configChanges: () => configDifferences(live.config, configured().config),
    configInForce: () => ownValues(live.config),
    metrics: metrics.text,
  }
}
