import { createLiveConfig, type LiveConfig } from '../../config/live.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { createServerPolicy } from '../../core/server-policy.ts'
import { signingDisagreement } from '../../core/signing/agreement.ts'
import { StandByEnded } from '../../domain/cluster/join.ts'
import { createMetrics } from '../../domain/metrics.ts'
import { startServer } from '../../server.ts'
import { configFile, EXIT, type Host, type Options } from '../command.ts'
import { findDatabase, MIGRATIONS, startDatabase } from '../database.ts'
import { banner } from './banner.ts'
import { openCertificate } from './certificate.ts'
import { ensureDataDirectory } from './data-directory.ts'
import { diagnosticsOf } from './diagnostics.ts'
import { giveBackMemory } from './give-back.ts'
import { createHealth } from './health.ts'
import { loadIdentityKeys } from './identity-key-file.ts'
import type { ServerLog } from './log.ts'
import { startMetricsListener } from './metrics-listener.ts'
import type { ParentLink } from './nodes/child.ts'
import { optimiseOnceWorking } from './optimising.ts'
import { reloadConfig } from './reload.ts'
import { notifyReady } from './service-manager.ts'
import { openSigningKey } from './signing-key-file.ts'
import { spareMemory } from './spare-memory.ts'
import { startTracing } from './tracing.ts'
import { collectWhileResting, releaseOnceSettled, spareWhileBodiesArrive } from './young-generation.ts'

export interface ServeParts {
  /** When the process began, by `performance.now()`. */
  readonly begun: number
  readonly loaded: LoadedConfig
  /** Reads the configuration again. @throws ConfigError */
  readonly read: () => LoadedConfig
  /** What tells another command of the same configuration. */
  readonly flags: readonly string[]
  readonly values: Options
  readonly serverLog: ServerLog
  /** What started this process as one of its nodes. */
  readonly parent: ParentLink | undefined
}

/** Serves in this process, until it is asked to stop. @returns the exit code */
export async function serveHere(host: Host, parts: ServeParts): Promise<number> {
  const { begun, loaded, flags, values, serverLog, parent } = parts
  const own = (given: LoadedConfig): LoadedConfig => parent?.own(given) ?? given
  const live = createLiveConfig(own(loaded).config)
  const { config } = live
  const { log } = serverLog
  const read = () => own(parts.read())
  const asked = host.stopSignal()
  const signal = parent === undefined ? asked : AbortSignal.any([asked, parent.stop])
  const stop = stopRequested(signal)
  const running = await start(host, { live, serverLog, read, flags, signal, parent }).catch((error: unknown) => {
    if (error instanceof StandByEnded) return undefined
    throw error
  })
  if (running === undefined) {
    log.info('stopped while standing by')
    return EXIT.ok
  }
  const seconds = (performance.now() - begun) / 1000
  optimiseOnceWorking()
  giveBackMemory()
  running.onFirstRequest(releaseOnceSettled().asked)
  if (parent === undefined) {
    host.complain(banner({ ...running, seconds, config, configFile: configFile(host, values), ...host }))
    notifyReady(host.env, log)
  }
  log.info({ port: running.port, ms: Math.round(seconds * 1000) }, 'ready')
  parent?.up({ isServing: true, port: running.port, httpsPorts: running.httpsPorts })
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
}

interface StartParts {
  readonly live: LiveConfig
  readonly serverLog: ServerLog
  readonly read: () => LoadedConfig
  readonly flags: readonly string[]
  /** Aborted when the process is to stop. */
  readonly signal: AbortSignal
  readonly parent: ParentLink | undefined
}

function stopRequested(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
    // A parent may have asked while this program was still being loaded.
    if (signal.aborted) resolve()
  })
}

/** Starts everything in order, and stops it in the opposite order, also if one of the steps fails. */
async function start(host: Host, { live, serverLog, read, flags, signal, parent }: StartParts) {
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
    const reload = () => {
      void certificate?.reload()
      reloading = reloading.then(() => reloadConfig({ live, policy, log, read, done: metrics.reloaded }))
    }
    host.onReload(reload)
    parent?.onReload(reload)
    parent?.answer({ metrics: metrics.text, ready: async () => (await health.whyNotReady()) ?? '' })
    const hasListener = config.metrics.enabled && parent === undefined
    const listener = hasListener ? await startMetricsListener(config.metrics, metrics, health) : undefined
    undo.push(async () => listener?.close())
    const database = parent === undefined ? startDatabase(config, host.uid, log) : findDatabase(config)
    const { connection, embedded, stop: stopDatabase } = await database
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
      holder: parent?.holder,
      isLast: parent?.isLast,
      get farewellMs() {
        return parent?.farewellMs()
      },
      standBy: {
        signal,
        began() {
          // It holds syncs from now on, perhaps for weeks.
          releaseOnceSettled()
          notifyReady(host.env, log, 'standing by')
          parent?.up({ isServing: false, port: config.listen.port, httpsPorts: config.https.ports })
        },
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
    const resting = collectWhileResting()
    undo.push(async () => resting.stop())
    const bodySparing = spareWhileBodiesArrive(metrics.arrivals.arrivingBodyBytes)
    undo.push(async () => bodySparing.stop())
    const { port, httpsPorts, lost, onFirstRequest } = server
    return {
      port,
      httpsPorts,
      lost,
      onFirstRequest,
      metricsPort: listener?.port,
      isEmbedded: embedded !== undefined,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
