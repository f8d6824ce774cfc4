import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/**
 * A process that holds many long polls on raw sockets, sends messages and notes when each poll is answered. Sending and listening
 * share its clock, and it does next to nothing per answer, so that what it measures is the server.
 */

export interface FanOutTask {
  readonly host: string
  readonly port: number
  /** Path up to and without `/sync`. */
  readonly prefix: string
  /** Where messages are sent, if not where the listeners poll. */
  readonly sendTo?: { readonly host: string; readonly port: number } | undefined
  readonly room: string
  readonly sender: string
  readonly word: string
  readonly listeners: readonly { readonly token: string; readonly since: string }[]
  readonly rounds: number
  readonly sustainedSeconds: number
  /** How a listener polls; without it, by classic sync. */
  readonly polling?: Polling
}

/** A request that polls: the path up to the position, which ends it, and the body, if it is a POST. */
export interface Polling {
  readonly path: string
  readonly body?: string
  /** The key of the next position in an answer. */
  readonly key: string
}

export interface FanOutResult {
  /** For each round, the time from writing the message to the answer of the first, the median and the last listener. */
  readonly rounds: readonly { readonly firstMs: number; readonly medianMs: number; readonly lastMs: number }[]
  readonly sustained: { readonly deliveries: number; readonly seconds: number }
}

const POLL_TIMEOUT_MS = 120_000
/** Long enough for a server to have put every poll to sleep. */
const SETTLE_MS = 700
const CHUNKED_END = '0\r\n\r\n'

interface Listener {
  readonly socket: Socket
  readonly before: string
  readonly after: string
  since: string
  pending: string
}

process.on('disconnect', () => process.exit(0))
process.once('message', (task: FanOutTask) => {
  run(task).then(
    (result) => process.send?.(result),
    (error: Error) => {
      console.error(error.message)
      process.exit(1)
    },
  )
})

async function run(task: FanOutTask): Promise<FanOutResult> {
  const crowd = openCrowd(task)
  await crowd.connected
  const rounds: FanOutResult['rounds'][number][] = []
  crowd.pollAll()
  for (let round = 0; round < task.rounds; round += 1) {
    await pause(SETTLE_MS)
    const times = (await crowd.deliver(`round-${round}.`, false)).toSorted((a, b) => a - b)
    rounds.push({ firstMs: times[0]!, medianMs: times[times.length >> 1]!, lastMs: times.at(-1)! })
    crowd.pollAll()
  }
  await pause(SETTLE_MS)
  const begun = performance.now()
  let deliveries = 0
  for (let round = 0; performance.now() - begun < task.sustainedSeconds * 1_000; round += 1) {
    deliveries += (await crowd.deliver(`sustained-${round}.`, true)).length
  }
  return { rounds, sustained: { deliveries, seconds: (performance.now() - begun) / 1_000 } }
}

function openCrowd(task: FanOutTask) {
  const sender = openSender(task)
  const polling = task.polling ?? {
    path: `${task.prefix}/sync?timeout=${POLL_TIMEOUT_MS}&since=`,
    key: 'next_batch',
  }
  const position = new RegExp(`"${polling.key}":"([^"]+)"`)
  let marker = ''
  let sentAt = 0
  let arrivals: number[] = []
  let pollsAtOnce = false
  let allArrived: (() => void) | undefined

  const listeners = task.listeners.map(({ token, since }) => openListener({ ...task, polling }, token, since, onAnswer))

  function onAnswer(listener: Listener, answer: string): void {
    const arrivedAt = performance.now()
    const token = position.exec(answer)?.[1]
    if (token === undefined) throw new Error(`not the answer of a sync: ${answer.slice(0, 500)}`)
    listener.since = token
    const isAwaited = marker !== '' && answer.includes(marker)
    if (pollsAtOnce || !isAwaited) poll(listener)
    if (!isAwaited) return
    arrivals.push(arrivedAt - sentAt)
    if (arrivals.length === listeners.length) allArrived?.()
  }

  return {
    connected: Promise.all(listeners.map(({ socket }) => once(socket, 'connect'))),
    pollAll: () => listeners.forEach(poll),
    /** Sends one message and waits until every listener has it; gives the milliseconds each took. */
    async deliver(text: string, pollAtOnce: boolean): Promise<readonly number[]> {
      arrivals = []
      marker = text
      pollsAtOnce = pollAtOnce
      const done = new Promise<void>((resolve) => {
        allArrived = resolve
      })
      sentAt = performance.now()
      sender(text)
      await done
      return arrivals
    },
  }
}

function openListener(
  task: FanOutTask & { readonly polling: Polling },
  token: string,
  since: string,
  onAnswer: (listener: Listener, answer: string) => void,
): Listener {
  const socket = connect({ host: task.host, port: task.port, noDelay: true })
  const { path, body } = task.polling
  const entity =
    body === undefined ? '\r\n' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const after = ` HTTP/1.1\r\nHost: ${task.host}:${task.port}\r\nAuthorization: Bearer ${token}\r\n${entity}`
  const before = `${body === undefined ? 'GET' : 'POST'} ${path}`
  const listener: Listener = { socket, before, after, since, pending: '' }
  socket.on('data', (chunk: Buffer) => {
    listener.pending += chunk.toString('latin1')
    if (!isComplete(listener.pending)) return
    const answer = listener.pending
    listener.pending = ''
    onAnswer(listener, answer)
  })
  socket.on('error', fail).on('close', () => fail(new Error('the server closed a long poll')))
  return listener
}

const poll = ({ socket, before, after, since }: Listener): void => {
  socket.write(before + encodeURIComponent(since) + after, 'latin1')
}

function isComplete(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end))?.[1]
  return length === undefined ? text.endsWith(CHUNKED_END) : text.length - end - 4 >= Number(length)
}

function openSender(task: FanOutTask): (text: string) => void {
  const { host, port } = task.sendTo ?? task
  const socket = connect({ host, port, noDelay: true })
  let count = 0
  socket.on('error', fail).on('close', () => fail(new Error('the server closed the sending connection')))
  socket.on('data', (chunk) => {
    if (chunk.includes('HTTP/1.1 4') || chunk.includes('HTTP/1.1 5')) fail(new Error(chunk.toString()))
  })
  return (text) => {
    count += 1
    const body = JSON.stringify({ msgtype: 'm.text', body: text })
    const head = [
      `PUT ${task.prefix}/rooms/${task.room}/send/m.room.message/${task.word}-${count} HTTP/1.1`,
      `Host: ${host}:${port}`,
      `Authorization: Bearer ${task.sender}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  }
}

function fail(error: Error): never {
  console.error(error.message)
  process.exit(1)
}
