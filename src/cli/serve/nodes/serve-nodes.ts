import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { ConfigError, type LoadedConfig } from '../../../config/load.ts'
import type { Config } from '../../../config/schema.ts'
import { isServing } from '../../../domain/cluster/node-fit.ts'
import { NODE_LEASE_MS, NODE_RENEWAL_RETRY_MS } from '../../../domain/limits/cluster.ts'
import { freeSocketPath } from '../../../http/unix-socket.ts'
import { endLease, findNode, leaveNode } from '../../../store/cluster/nodes.ts'
import { type Database, openDatabase } from '../../../store/db/db.ts'
import { WRITER } from '../../../store/db/writer-lock.ts'
import { configFile, EXIT, type Host, type Options } from '../../command.ts'
import { startDatabase } from '../../database.ts'
import { banner } from '../banner.ts'
import { ensureDataDirectory } from '../data-directory.ts'
import { giveBackMemory } from '../give-back.ts'
import { loadIdentityKeys } from '../identity-key-file.ts'
import type { ServerLog } from '../log.ts'
import { type MetricsListener, startMetricsListener } from '../metrics-listener.ts'
import { notifyReady } from '../service-manager.ts'
import { openSigningKey } from '../signing-key-file.ts'
import { beginChild, type Child, type Up } from './children.ts'
import { createFamily, type Family } from './family.ts'
import { joinMetrics } from './node-metrics.ts'

export interface NodesParts {
  /** When this process began, by `performance.now()`. */
  readonly begun: number
  readonly loaded: LoadedConfig
  readonly values: Options
  readonly serverLog: ServerLog
}

/** What a node takes at least, and this process and its Postgres beside the nodes. */
const NODE_BYTES = 150 * 1024 * 1024
const OTHER_BYTES = 200 * 1024 * 1024
const SECRET_BYTES = 32
const HOLDER_BYTES = 8

/** Starts the database, and processes that serve from it, and keeps them running until this one is asked to stop. @returns the exit code */
export async function serveNodes(host: Host, parts: NodesParts): Promise<number> {
  mustHaveMemory(parts.loaded, host.memoryBytes())
  const signal = host.stopSignal()
  const { log, sampling } = parts.serverLog
  const undo: (() => Promise<unknown> | undefined)[] = []
  let family: Family | undefined
  // Without these, such a signal would end this process while it prepares. Nodes that are yet to begin read everything anew.
  host.onReload(() => {
    for (const child of family?.children() ?? []) child.reload()
  })
  host.onRestart(() => {
    if (family === undefined) return log.info('no node has begun yet: there is nothing to restart')
    log.info('the nodes restart, one after another')
    void family.restartInTurn().then(() => log.info('all nodes were restarted'))
  })
  try {
    family = await prepare(host, parts, { undo, signal })
    const stop = new Promise<undefined>((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined), { once: true })
      if (signal.aborted) resolve(undefined)
    })
    const ending = signal.aborted ? undefined : await Promise.race([family.start(), stop])
    giveBackMemory()
    if (ending !== undefined) {
      log.fatal({ ...ending }, 'the first node ended before it took requests')
      return ending.code ?? EXIT.failure
    }
    await stop
    log.info('stopping')
    return EXIT.ok
  } finally {
    for (const step of undo.reverse())
      await Promise.resolve(step()).catch((err: unknown) => log.warn({ err }, 'a step of stopping failed; going on'))
    sampling.flush()
    if (signal.aborted) log.info('stopped')
  }
}

/** Starts what the nodes share. */
async function prepare(
  host: Host,
  parts: NodesParts,
  { undo, signal }: { readonly undo: (() => Promise<unknown> | undefined)[]; readonly signal: AbortSignal },
): Promise<Family> {
  const { config } = parts.loaded
  const { log } = parts.serverLog
  // Made here once, and not by several at the same moment.
  await ensureDataDirectory(config.data_dir, host.uid)
  await openSigningKey(config.data_dir)
  await loadIdentityKeys(config.data_dir)
  let family: Family | undefined
  const listener = config.metrics.enabled ? await measure(config.metrics, () => family) : undefined
  undo.push(async () => listener?.close())
  if (config.listen.socket !== undefined) await freeSocketPath(config.listen.socket, 'listen.socket')
  const { connection, embedded, stop } = await startDatabase(config, host.uid, log)
  undo.push(stop)
  const db = openDatabase({ connection, poolSize: 1 })
  undo.push(() => db.close())
  if (embedded !== undefined) await vacate(db)
  else if (config.cluster.secret === undefined) await untilVacant(db, { log, signal })
  family = familyOf(host, parts, { db, isEmbedded: embedded !== undefined, metricsPort: listener?.port })
  undo.push(family.stop)
  return family
}

/** @throws ConfigError if so many nodes have no room here */
function mustHaveMemory({ config, origins }: LoadedConfig, memoryBytes: number): void {
  const { nodes } = config.cluster
  const needed = nodes * NODE_BYTES + OTHER_BYTES
  if (needed <= memoryBytes) return
  const most = Math.max(1, Math.floor((memoryBytes - OTHER_BYTES) / NODE_BYTES))
  const megabytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MB`
  const message = `cluster.nodes: ${nodes} nodes need ${megabytes(needed)}, and there are ${megabytes(memoryBytes)}: set ${most} at most`
  throw new ConfigError([{ origin: origins.get('cluster.nodes') ?? 'cluster.nodes', message }])
}

function familyOf(
  host: Host,
  { begun, loaded, values, serverLog }: NodesParts,
  facts: { readonly db: Database; readonly isEmbedded: boolean; readonly metricsPort: number | undefined },
): Family {
  const { db, isEmbedded, metricsPort } = facts
  const { config } = loaded
  const { log } = serverLog
  const secret = randomBytes(SECRET_BYTES).toString('base64url')
  let isReady = false
  let hasServed = false

  function heard(up: Up): void {
    if (!isReady) notifyReady(host.env, log, up.isServing ? 'serving' : 'standing by')
    isReady = true
    if (!up.isServing || hasServed) return
    hasServed = true
    const { port, httpsPorts } = up
    const seconds = (performance.now() - begun) / 1000
    const { version, program } = host
    const settings = configFile(host, values)
    host.complain(
      banner({ version, config, configFile: settings, port, httpsPorts, metricsPort, isEmbedded, program, seconds }),
    )
    log.info({ port, nodes: config.cluster.nodes, ms: Math.round(seconds * 1000) }, 'ready')
  }

  return createFamily({
    count: config.cluster.nodes,
    log,
    begin(number, waitedMs) {
      const child = beginChild({ number, holder: randomBytes(HOLDER_BYTES).toString('hex'), secret }, heard)
      log.info({ node: number, pid: child.pid, waited_ms: waitedMs }, 'a node begins')
      return child
    },
    ended: ({ holder }) => void giveUpPlace(db, holder),
  })
}

/**
 * Ends the lease of a process that has ended, so that the next node begins at once. Nobody is misled: it answers nothing any more, and what it
 * had sent to the database is met by the fencing number of the next holder, as after a lease that ran out.
 */
async function giveUpPlace(db: Database, holder: string): Promise<void> {
  for (let leftMs = NODE_LEASE_MS; leftMs > 0; leftMs -= NODE_RENEWAL_RETRY_MS) {
    const isDone = await endLease(db, holder).then(
      () => true,
      () => false,
    )
    if (isDone) return
    await pause(NODE_RENEWAL_RETRY_MS, undefined, { ref: false })
  }
}

/** In a Postgres that this process has just started, nobody has the place any more. */
async function vacate(db: Database): Promise<void> {
  const found = await findNode(db, WRITER)
  if (isServing(found)) await leaveNode(db, { writer: WRITER, fence: found.fence })
}

/** Waits for the lease of a node of an earlier run, which had another secret. @throws Error if somebody renews it */
async function untilVacant(
  db: Database,
  { log, signal }: { readonly log: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const found = await findNode(db, WRITER)
  if (!isServing(found)) return
  log.info({ ms: found.left_ms }, 'a node of an earlier run may still have its place; waiting until its lease ends')
  await pause(found.left_ms, undefined, { signal }).catch(() => {})
  const next = await findNode(db, WRITER)
  if (isServing(next) && !signal.aborted)
    throw new Error(
      `the node at ${next.address} uses this database: to stand by for it, give all nodes the same cluster.secret; else give these a database of their own`,
    )
}

/** Metrics and health of all nodes, on one listener. */
function measure(options: Config['metrics'], family: () => Family | undefined): Promise<MetricsListener> {
  const children = () => family()?.children() ?? []

  return startMetricsListener(
    options,
    {
      async text() {
        const ask = async (child: Child) => ({ child, text: await child.ask('metrics') })
        const answers = await Promise.all(children().map(ask))
        const texts = new Map<number, string>()
        for (const { child, text } of answers) if (text !== undefined) texts.set(child.number, text)
        const up = answers.map(
          ({ child, text }) => `hearth_node_up{node="${child.number}"} ${text && child.isUp() ? 1 : 0}\n`,
        )
        return `${joinMetrics(texts)}${ABOUT_UP}${up.join('')}${ABOUT_ACCIDENTS}${family()?.accidents() ?? 0}\n`
      },
    },
    {
      async whyNotReady() {
        const answers = children().map((child) => child.ask('ready'))
        const allSaid = Promise.all(answers).then((reasons) =>
          reasons.includes('') ? undefined : (reasons.find((reason) => reason !== undefined) ?? 'starting'),
        )
        // Whoever asks may have less patience than there is with a node that hangs.
        const oneIsReady = answers.map((answer) => answer.then((reason) => (reason === '' ? undefined : allSaid)))
        return Promise.race([...oneIsReady, allSaid])
      },
    },
  )
}

const ABOUT_UP = '# HELP hearth_node_up Whether this node takes requests, and answers.\n# TYPE hearth_node_up gauge\n'
const ABOUT_ACCIDENTS = `# HELP hearth_node_accidents_total How often a node ended by itself, and was started again.
# TYPE hearth_node_accidents_total counter
hearth_node_accidents_total `
