import { parseArgs } from 'node:util'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { createServerPolicy, type LiveServerPolicy } from '../../core/server-policy.ts'
import { signingDisagreement } from '../../core/signing/agreement.ts'
import { createMetrics } from '../../domain/metrics.ts'
import { startServer } from '../../server.ts'
import { CONFIG_OPTIONS, type Command, configFile, EXIT, type Host, readConfig, UsageError } from '../command.ts'
import { MIGRATIONS, startDatabase } from '../database.ts'
import { banner } from './banner.ts'
import { openCertificate } from './certificate.ts'
import { ensureDataDirectory } from './data-directory.ts'
import { giveBackMemory } from './give-back.ts'
import { createHealth } from './health.ts'
import { loadIdentityKeys } from './identity-key-file.ts'
import { createLog } from './log.ts'
import { startMetricsListener } from './metrics-listener.ts'
import { isBelowFloor } from './node-floor.ts'
import { optimiseSooner } from './optimise-sooner.ts'
import { openSigningKey } from './signing-key-file.ts'
import { spareMemory } from './spare-memory.ts'
import { releaseOnceSettled } from './young-generation.ts'

export const serveCommand: Command = {
  usage: `[--roles LIST] [--config FILE] [--set KEY=VALUE]...

  --roles    what this server does, such as --roles identity; the same as --set roles=LIST
  --config   the configuration file; else $HEARTH_CONFIG, else hearth.yaml here if there is one
  --set      a value that beats file and environment, such as --set listen.port=8009`,

  async run(host, words) {
    const begun = performance.now()
    const options = { ...CONFIG_OPTIONS, roles: { type: 'string' } } as const
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true })
    if (positionals.length > 0) throw new UsageError(`"${positionals[0]}" is not understood`)
    const set = [...(values.set ?? []), ...(values.roles === undefined ? [] : [`roles=${values.roles}`])]
    const read = () => readConfig(host, { ...values, set }).config
    const config = read()
    const log = createLog(config.log, host.isTerminal)
    if (isBelowFloor(host.nodeVersion))
      log.warn({ node: host.nodeVersion }, 'others can stop this release of Node.js: move to Node.js 24')
    host.onCrash((error) => log.fatal({ err: error }, 'an error that nobody expected; the server ends'))
    const stop = stopRequested(host.stopSignal())
    const flags = [
      ...(values.config === undefined ? [] : ['--config', values.config]),
      ...set.flatMap((one) => ['--set', one]),
    ]
    const running = await start(host, config, log, read, flags)
    const seconds = (performance.now() - begun) / 1000
    optimiseSooner()
    giveBackMemory()
    releaseOnceSettled()
    host.complain(banner({ ...running, seconds, config, configFile: configFile(host, values), ...host }))
    log.info({ port: running.port, ms: Math.round(seconds * 1000) }, 'ready')
    await stop
    log.info('stopping')
    await running.stop()
    log.info('stopped')
    return EXIT.ok
  },
}

/** Reads `federation.allow` and `deny` again. All other options change at the next start. */
function rereadPolicy(policy: LiveServerPolicy, config: Config, read: () => Config, log: Logger): void {
  try {
    const { allow, deny } = read().federation
    policy.use({ enabled: config.federation.enabled, allow, deny })
    log.info({ allow: allow.length, deny: deny.length }, 'federation.allow and federation.deny were read again')
  } catch (error) {
    log.error({ reason: (error as Error).message }, 'the configuration is wrong; what was in force stays so')
  }
}

function stopRequested(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

/** Starts everything in order, and stops it in the opposite order, also if one of the steps fails. */
async function start(host: Host, config: Config, log: Logger, read: () => Config, flags: readonly string[]) {
  const undo: (() => Promise<void> | undefined)[] = []
  const stop = async () => {
    for (const step of undo.reverse()) {
      await Promise.resolve(step()).catch((err: unknown) => log.warn({ err }, 'a step of stopping failed; going on'))
    }
  }
  try {
    const disagreement = await signingDisagreement()
    if (disagreement !== undefined)
      throw new Error(`nothing is signed like this: ${disagreement}; install it again (npm ci)`)
    await ensureDataDirectory(config.data_dir, host.uid)
    const signingKey = await openSigningKey(config.data_dir)
    const identityKeys = await loadIdentityKeys(config.data_dir)
    const metrics = createMetrics({ version: host.version, node: host.nodeVersion })
    metrics.watchProcess()
    const health = createHealth()
    const certificate = await openCertificate(config.https, { log })
    undo.push(async () => certificate?.close())
    if (certificate) metrics.watchCertificate(() => certificate.current().validUntil)
    const policy = createServerPolicy(config.federation, config.server_name)
    host.onReload(() => {
      void certificate?.reload()
      rereadPolicy(policy, config, read, log)
    })
    const listener = config.metrics.enabled ? await startMetricsListener(config.metrics, metrics, health) : undefined
    undo.push(async () => listener?.close())
    const { connection, embedded, stop: stopDatabase } = await startDatabase(config, host.uid, log)
    undo.push(stopDatabase)
    const { version } = host
    const keys = { signingKey, identityKeys }
    const options = {
      config,
      connection,
      migrations: MIGRATIONS,
      ...keys,
      policy,
      version,
      metrics,
      health,
      certificate,
      log,
    }
    const server = await startServer(options)
    undo.push(server.close)
    if (config.backup.place !== undefined) {
      const { startBackups } = await import('./backup-schedule.ts')
      const run = (words: readonly string[], signal: AbortSignal) => host.runBeside([...words, ...flags], signal)
      undo.push(startBackups(config.backup, { connection, log, now: Date.now, run }).stop)
    }
    const sparing = spareMemory(host.residentBytes)
    undo.push(async () => sparing.stop())
    const { port, httpsPorts } = server
    return { port, httpsPorts, metricsPort: listener?.port, isEmbedded: embedded !== undefined, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
