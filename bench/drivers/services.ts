import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sharedNow } from '../measurement.ts'

/**
 * A process that is all application services, at one address and told apart by their paths. They take what they are sent, and note
 * when the messages of it came that say when they were sent: `at <milliseconds>`.
 */

export interface ServicesReady {
  readonly url: string
}

export type ServicesCommand =
  /** Resolves when so many dated messages have come since the last report, or at the latest after a minute. */
  | { readonly command: 'report'; readonly deliveries: number }
  /** Resolves when nothing has come for a second. */
  | { readonly command: 'settle' }

export interface ServicesReport {
  /** From sending to arrival, of the messages that say when they were sent. */
  readonly delaysMs: readonly number[]
  readonly transactions: number
  readonly cpuMs: number
}

const LONGEST_WAIT_MS = 60_000
const STILL_MS = 1_000
const LOOK_EVERY_MS = 20

let delaysMs: number[] = []
let transactions = 0
let cpuBefore = process.cpuUsage()
let lastAt = 0

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    lastAt = sharedNow()
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    if (!request.url?.includes('/transactions/')) return
    transactions += 1
    for (const { content } of JSON.parse(Buffer.concat(chunks).toString()).events) {
      if (content.body?.startsWith('at ')) delaysMs.push(lastAt - Number(content.body.slice(3)))
    }
  })
})

function report(): ServicesReport {
  const { user, system } = process.cpuUsage(cpuBefore)
  const made = { delaysMs, transactions, cpuMs: (user + system) / 1_000 }
  cpuBefore = process.cpuUsage()
  delaysMs = []
  transactions = 0
  return made
}

async function until(isSo: () => boolean): Promise<void> {
  const latest = sharedNow() + LONGEST_WAIT_MS
  while (!isSo() && sharedNow() < latest) await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
}

async function obey(task: ServicesCommand): Promise<void> {
  if (task.command === 'settle') await until(() => sharedNow() - lastAt > STILL_MS)
  else await until(() => delaysMs.length >= task.deliveries)
  process.send?.(report())
}

process.on('disconnect', () => process.exit(0))
process.once('message', () => {
  process.on('message', (task: ServicesCommand) => void obey(task))
  server.listen(0, '127.0.0.1', () => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    process.send?.({ url } satisfies ServicesReady)
  })
})
