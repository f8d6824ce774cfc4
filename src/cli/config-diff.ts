import { type Difference, ownValues } from '../config/difference.ts'
import type { LoadedConfig } from '../config/load.ts'
import { withAdministration } from './administration.ts'
import type { Host } from './command.ts'

/** What differs: from the defaults, or between what the running server has and what its configuration says now. */
export async function showDifferences(
  host: Host,
  { config, origins }: LoadedConfig,
  { running, json }: { readonly running?: boolean | undefined; readonly json?: boolean | undefined },
): Promise<string> {
  if (running) {
    const { changes }: { changes: readonly Difference[] } = await withAdministration(host, config, (api) =>
      api.call('GET', '/_hearth/admin/v1/config_changes'),
    )
    return json ? asJson(changes) : printChanges(changes)
  }
  const own = ownValues(config).filter(({ key }) => origins.get(key) !== 'default')
  if (json) return asJson(own)
  if (own.length === 0) return 'Every option has its default.'
  return own
    .map(({ key, value, default: usual }) => `${key}: ${JSON.stringify(value)}  (default: ${JSON.stringify(usual)})`)
    .join('\n')
}

function printChanges(changes: readonly Difference[]): string {
  if (changes.length === 0) return 'The running server has what its configuration says.'
  const lines = changes.map(({ key, running, configured, needs_restart }) => {
    const isSecret = running === '[hidden]' || configured === '[hidden]'
    const both = isSecret ? 'a secret that differs' : `${JSON.stringify(running)} -> ${JSON.stringify(configured)}`
    return `${key}: ${both}  (${needs_restart ? 'after a restart' : 'after SIGHUP'})`
  })
  return lines.join('\n')
}

const asJson = (value: unknown): string => JSON.stringify(value, undefined, 2)
