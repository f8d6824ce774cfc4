import cluster from 'node:cluster'
import { PROBE_TIMEOUT_MS } from '../health.ts'
import { type News, NODE_ORDERS, type NodeOrders, type Order, type Question } from './child.ts'

/** A process that this one started as a node. */
export interface Child {
  readonly number: number
  readonly holder: string
  readonly pid: number
  isServing(): boolean
  /** Whether it was asked to stop. */
  isAsked(): boolean
  /** Whether it takes requests; false if it ended before it did. */
  readonly up: Promise<boolean>
  /** Whether it does now. */
  isUp(): boolean
  readonly ended: Promise<Ending>
  /** Ends it by force if it takes too long. @param isLast whether no other node of this parent is left */
  stop(isLast: boolean): Promise<Ending>
  reload(): void
  /** Undefined if it does not answer soon. */
  ask(about: Question): Promise<string | undefined>
}

/** How a process ended: with a code, or by a signal; or why it did not begin. */
export interface Ending {
  readonly code: number | null
  readonly signal: string | null
  readonly reason?: string
}

/** Where a node takes requests, and whether it serves them or passes them on. */
export type Up = Extract<News, { kind: 'up' }>

/** More than one takes that waits for the next one to serve. */
const STOP_PATIENCE_MS = 25_000
/** A node that is looking whether its database answers says so in its own time: only one that says nothing counts as one that hangs. */
const ANSWER_MS = PROBE_TIMEOUT_MS + 2_000

/** All nodes accept connections from the same sockets: one that hangs, or is killed, has none on its way to it. */
cluster.schedulingPolicy = cluster.SCHED_NONE

/** Starts this program again, with the same words, as a node. */
export function beginChild(orders: NodeOrders, heard: (news: Up) => void): Child {
  // The service manager hears from this process.
  const worker = cluster.fork({ [NODE_ORDERS]: JSON.stringify(orders), NOTIFY_SOCKET: '' })
  const { pid } = worker.process
  const questions = new Map<number, (text: string | undefined) => void>()
  /** What it cannot hear yet. */
  let held: Order[] | undefined = []
  let asked = 0
  let isServing = false
  let isUp = false
  let isAsked = false
  let begun: (isUp: boolean) => void
  const up = new Promise<boolean>((resolve) => {
    begun = resolve
  })
  const ended = new Promise<Ending>((resolve) => {
    worker.once('exit', (code: number | null, signal: string | null) => resolve({ code, signal }))
    worker.once('error', ({ message }) => resolve({ code: null, signal: null, reason: message }))
  }).then((ending) => {
    isServing = false
    isUp = false
    begun(false)
    for (const resolve of questions.values()) resolve(undefined)
    return ending
  })
  worker.on('error', () => {})
  worker.on('message', (news: News) => {
    if (news.kind === 'answer') questions.get(news.id)?.(news.text)
    if (news.kind === 'begun') {
      const orders = held ?? []
      held = undefined
      for (const order of orders) send(order)
    }
    if (news.kind === 'up') {
      isServing = news.isServing
      isUp = true
      begun(true)
      heard(news)
    }
  })
  const send = (order: Order): void => {
    if (held === undefined) worker.send(order, () => {})
    else held.push(order)
  }

  return {
    number: orders.number,
    holder: orders.holder,
    pid: pid ?? 0,
    isServing: () => isServing,
    isAsked: () => isAsked,
    isUp: () => isUp,
    up,
    ended,
    async stop(isLast) {
      isAsked = true
      send({ kind: 'stop', isLast })
      const impatience = setTimeout(() => worker.kill('SIGKILL'), STOP_PATIENCE_MS)
      const ending = await ended
      clearTimeout(impatience)
      return ending
    },
    reload: () => send({ kind: 'reload' }),
    async ask(about) {
      if (held !== undefined) return undefined
      const id = asked++
      const answered = new Promise<string | undefined>((resolve) => questions.set(id, resolve))
      const impatience = setTimeout(() => questions.get(id)?.(undefined), ANSWER_MS)
      send({ kind: 'ask', id, about })
      const text = await Promise.race([answered, ended.then(() => undefined)])
      clearTimeout(impatience)
      questions.delete(id)
      return text
    },
  }
}
