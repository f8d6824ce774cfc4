import { parseArgs } from 'node:util'
import { createLiveConfig, type LiveConfig } from '../../config/live.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { createServerPolicy } from '../../core/server-policy.ts'
import { signingDisagreement } from '../../core/signing/agreement.ts'
import { StandByEnded } from '../../domain/cluster/join.ts'
import { createMetrics } from '../../domain/metrics.ts'
import { startServer } from '../../server.ts'
import { CONFIG_OPTIONS, type Command, configFile, EXIT, type Host, readConfig, UsageError } from '../command.ts'
import { MIGRATIONS, startDatabase } from '../database.ts'
import { banner } from './banner.ts'
import { openCertificate } from './certificate.ts'
import { ensureDataDirectory } from './data-directory.ts'
import { diagnosticsOf } from './diagnostics.ts'
import { giveBackMemory } from './give-back.ts'
import { createHealth } from './health.ts'
import { loadIdentityKeys } from './identity-key-file.ts'
import { createServerLog, type ServerLog } from './log.ts'
import { startMetricsListener } from './metrics-listener.ts'
import { isBelowFloor } from './node-floor.ts'
import { optimiseSooner } from './optimise-sooner.ts'
import { reloadConfig } from './reload.ts'
import { notifyReady } from './service-manager.ts'
import { openSigningKey } from './signing-key-file.ts'
import { spareMemory } from './spare-memory.ts'
import { startTracing } from './tracing.ts'
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
    const read = () => readConfig(host, { ...values, set })
    const live = createLiveConfig(read().config)
    const { config } = live
    const serverLog = createServerLog(config.log, host.isTerminal)
    const { log } = serverLog
    if (isBelowFloor(host.nodeVersion))
      log.warn({ node: host.nodeVersion }, 'others can stop this release of Node.js: move to Node.js 24')
    host.onCrash((error) => log.fatal({ err: error }, 'an error that nobody expected; the server ends'))
    const signal = host.stopSignal()
    const stop = stopRequested(signal)
    const flags = [
      ...(values.config === undefined ? [] : ['--config', values.config]),
      ...set.flatMap((one) => ['--set', one]),
    ]
    const running = await start(host, { live, serverLog, read, flags, signal }).catch((error: unknown) => {
      if (error instanceof StandByEnded) return undefined
      throw error
    })
    if (running === undefined) {
      log.info('stopped while standing by')
      return EXIT.ok
    }
    const seconds = (performance.now() - begun) / 1000
    optimiseSooner()
    giveBackMemory()
    releaseOnceSettled()
    host.complain(banner({ ...running, seconds, config, configFile: configFile(host, values), ...host }))
    log.info({ port: running.port, ms: Math.round(seconds * 1000) }, 'ready')
    notifyReady(host.env, log)
    const wasLost = await Promise.race([running.lost.then(() => true), stop])
    if (wasLost) {
      // As after a crash: what a stop would still write may contradict what the other node writes.
      log.fatal('another node took the place of this one, which did not say in time that it runs; this process ends')
      serverLog.sampling.flush()
      return EXIT.failure
    }
    log.info('stopping')
    await running.stop()
    serverLog.sampling.flush()
    log.info('stopped')
    return EXIT.ok
  },
}

interface StartParts {
  readonly live: LiveConfig
  readonly serverLog: ServerLog
  readonly read: () => LoadedConfig
  readonly flags: readonly string[]
  /** Aborted when the process is to stop. */
  readonly signal: AbortSignal
}

function stopRequested(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

/** Starts everything in order, and stops it in the opposite order, also if one of the steps fails. */
async function start(host: Host, { live, serverLog, read, flags, signal }: StartParts) {
  const { config } = live
  const { log } = serverLog
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
    metrics.watchLog(() => serverLog.sampling.counts)
    const tracing = await startTracing(config.tracing, { version: host.version, log })
    undo.push(async () => tracing?.close())
    const health = createHealth()
    const certificate = await openCertificate(config.https, { log })
    undo.push(async () => certificate?.close())
    if (certificate) metrics.watchCertificate(() => certificate.current().validUntil)
    const policy = createServerPolicy(config.federation, config.server_name)
    let reloading = Promise.resolve()
    host.onReload(() => {
      void certificate?.reload()
      reloading = reloading.then(() => reloadConfig({ live, policy, log, read, done: metrics.reloaded }))
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
      tracing,
      diagnostics: diagnosticsOf({ live, serverLog, read, metrics }),
      health,
      certificate,
      standBy: {
        signal,
        began: () => notifyReady(host.env, log, 'standing by'),
      },
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
    const { port, httpsPorts, lost } = server
    return { port, httpsPorts, lost, metricsPort: listener?.port, isEmbedded: embedded !== undefined, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
