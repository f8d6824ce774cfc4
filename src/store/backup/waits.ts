import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import type pg from 'pg'

/** How long a small commit and a small request wait at this moment. */
export interface Waits {
  /** Milliseconds of both, up to 5 s; undefined where the database does not say. */
  measure(): Promise<number | undefined>
  close(): Promise<void>
}

/**
 * Measures in a thread of its own, which what the backup computes does not hold up. The program is text and not a file, so that it is the
 * same from source, from the build and in one bundled file.
 *
 * @param origin where the server answers, if it runs on this machine
 */
export function openWaits(connection: pg.ClientConfig, origin: string): Waits {
  const program = new Worker(PROGRAM, {
    eval: true,
    execArgv: [],
    workerData: { pg: createRequire(import.meta.url).resolve('pg'), connection: { ...connection }, origin },
  })
  program.unref()
  let answer: ((ms: number | undefined) => void) | undefined
  let hasEnded = false
  program.on('message', (ms: number | undefined) => answer?.(ms))
  program.on('error', () => {})
  program.on('exit', () => {
    hasEnded = true
    answer?.(undefined)
  })
  return {
    async measure() {
      if (hasEnded) return undefined
      const measured = new Promise<number | undefined>((resolve) => {
        answer = resolve
      })
      program.postMessage('measure')
      // A database that cannot be reached any more must not hold the backup up for ever.
      const giveUp = setTimeout(() => answer?.(LONGEST_MS), LONGEST_MS)
      return measured.finally(() => clearTimeout(giveUp))
    },
    async close() {
      await program.terminate()
    },
  }
}

const LONGEST_MS = 5_000

/** The message is for nobody: what counts is that its commit waits for the disk as others do. */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const { Client } = require(workerData.pg)
const client = new Client({ ...workerData.connection, application_name: 'hearth backup', keepAlive: true })
client.on('error', () => {})
const connecting = client.connect()
connecting.catch(() => {})

async function timed(work) {
  const begun = performance.now()
  await work()
  return performance.now() - begun
}

const commit = () => client.query("SELECT pg_logical_emit_message(true, 'hearth', 'waits')")
const request = async () => (await fetch(workerData.origin + '/health/live', { signal: AbortSignal.timeout(5000) })).text()

parentPort.on('message', async () => {
  try {
    await connecting
    const [database, server] = await Promise.all([timed(commit), timed(request).catch(() => 0)])
    parentPort.postMessage(database + server)
  } catch {
    parentPort.postMessage(undefined)
  }
})
`
