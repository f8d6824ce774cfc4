import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { withAdministration } from './administration.ts'
import { CONFIG_OPTIONS, type Command, EXIT, readConfig, UsageError } from './command.ts'

const AT = '/_hearth/admin/v1/search'
const ASK_EVERY_MS = 500

export const searchCommand: Command = {
  usage: `rebuild [--config FILE] [--set KEY=VALUE]...

Empties the index of messages and makes it again from all events, and waits for the end. Searches find only what is indexed meanwhile. If this
is interrupted, the running server, or the next one, goes on with it.

The server may run meanwhile or not.`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: CONFIG_OPTIONS, allowPositionals: true })
    if (positionals.join(' ') !== 'rebuild') throw new UsageError('say "search rebuild"')
    const { config } = readConfig(host, values)
    return withAdministration(host, config, async (api) => {
      await api.call('POST', `${AT}/rebuild`, {})
      for (let shown = -1; ; ) {
        const { indexed, newest, is_done: isDone } = await api.call('GET', AT)
        const percent = isDone ? 100 : Math.min(99, Math.floor((100 * indexed) / Math.max(1, newest)))
        if (percent !== shown && (host.isTerminal || isDone)) host.print(`${percent}% of all events are indexed.`)
        shown = percent
        if (isDone) return EXIT.ok
        await delay(ASK_EVERY_MS)
      }
    })
  },
}
