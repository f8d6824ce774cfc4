import { parseArgs } from 'node:util'
import { CONFIG_OPTIONS, type Command, readConfig, UsageError } from '../command.ts'
import { createServerLog } from './log.ts'
import { isBelowFloor } from './node-floor.ts'
import { parentOf } from './nodes/child.ts'

export const serveCommand: Command = {
  usage: `[--roles LIST] [--nodes N] [--config FILE] [--set KEY=VALUE]...

  --roles    what this server does, such as --roles identity; the same as --set roles=LIST
  --nodes    how many processes run beside each other; the same as --set cluster.nodes=N
  --config   the configuration file; else $HEARTH_CONFIG, else hearth.yaml here if there is one
  --set      a value that beats file and environment, such as --set listen.port=8009`,

  async run(host, words) {
    const begun = performance.now()
    const options = { ...CONFIG_OPTIONS, roles: { type: 'string' }, nodes: { type: 'string' } } as const
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true })
    if (positionals.length > 0) throw new UsageError(`"${positionals[0]}" is not understood`)
    const set = [
      ...(values.set ?? []),
      ...(values.roles === undefined ? [] : [`roles=${values.roles}`]),
      ...(values.nodes === undefined ? [] : [`cluster.nodes=${values.nodes}`]),
    ]
    const read = () => readConfig(host, { ...values, set })
    const loaded = read()
    const { config } = loaded
    const parent = parentOf(host.env, config)
    const serverLog = createServerLog(config.log, host.isTerminal, { node: parent?.number })
    const { log } = serverLog
    if (parent === undefined && isBelowFloor(host.nodeVersion))
      log.warn({ node: host.nodeVersion }, 'others can stop this release of Node.js: move to Node.js 24')
    host.onCrash((error) => log.fatal({ err: error }, 'an error that nobody expected; the server ends'))
    if (config.cluster.nodes > 1 && parent === undefined) {
      // It stays small: what a server is made of is loaded by its nodes.
      const { serveNodes } = await import('./nodes/serve-nodes.ts')
      return serveNodes(host, { begun, loaded, values, serverLog })
    }
    const flags = [
      ...(values.config === undefined ? [] : ['--config', values.config]),
      ...set.flatMap((one) => ['--set', one]),
    ]
    const { serveHere } = await import('./serve-here.ts')
    return serveHere(host, { begun, loaded, read, flags, values, serverLog, parent }).finally(() => parent?.leave())
  },
}
