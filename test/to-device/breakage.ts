import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Dice } from '../http/fuzz/values.ts'
import type { Json } from '../support/api.ts'
import { type Device, numbersIn } from './devices.ts'

export interface Breakage {
  readonly dice: Dice
  /** How many numbers all senders send together. */
  readonly messages: number
  readonly senders: readonly Device[]
  readonly receiver: Device
  /** Breaks things meanwhile; told how many messages have arrived. */
  breakThings(arrived: () => number): Promise<void>
}

/** Sends numbers from several devices to one while everything breaks. Gives them in the order in which they came. */
export async function sendAmidBreakage({
  dice,
  messages,
  senders,
  receiver,
  breakThings,
}: Breakage): Promise<number[]> {
  const received: number[] = []
  let isOver = false
  const receiving = receive(receiver, received, dice, () => isOver)
  const sending = senders.map(async (sender, place) => {
    for (let number = place; number < messages; number += senders.length)
      await sendSurely(sender, receiver, number, dice)
  })
  const all = Promise.all([...sending, breakThings(() => received.length)])
  await Promise.race([all, receiving])
  await all
  isOver = true
  await receiving
  return received
}

/** Every number once, and those of each sender in order. */
export function expectExactlyOnce(received: readonly number[], messages: number, senders: number): void {
  expect(received.toSorted((a, b) => a - b)).toEqual(Array.from({ length: messages }, (_, number) => number))
  for (let place = 0; place < senders; place++) {
    const own = received.filter((number) => number % senders === place)
    expect(own).toEqual(own.toSorted((a, b) => a - b))
  }
}

/** Repeats the call under its transaction id until it is answered, as clients do; now and then makes it two times at once. */
async function sendSurely(sender: Device, to: Device, number: number, dice: Dice): Promise<void> {
  const messages = { [to.userId]: { [to.deviceId]: { number } } }
  const once = async (): Promise<void> => {
    for (;;) {
      const answer = await sender.send(messages, { txnId: `number-${number}` }).catch(() => undefined)
      if (answer?.status === 200) return
      if (answer !== undefined && answer.status < 500) throw new Error(JSON.stringify(answer))
      await pause(10)
    }
  }
  await Promise.all(dice.below(10) === 0 ? [once(), once()] : [once()])
}

/**
 * Syncs from its token in one to three requests side by side, gives some of them up at a random moment, takes the first answer
 * that it gets, and goes on from there.
 */
async function receive(device: Device, received: number[], dice: Dice, isOver: () => boolean): Promise<void> {
  let since: string | undefined
  for (;;) {
    const wasOver = isOver()
    const query = since === undefined ? '' : `&since=${since}`
    const tries = Array.from({ length: 1 + dice.below(3) }, (): Promise<Json> => {
      const signal = AbortSignal.timeout(dice.below(3) === 0 ? dice.below(30) : 5_000)
      return device.api.call('GET', `/sync?timeout=${dice.below(2) * 50}${query}`, { token: device.token, signal })
    })
    const answer = await Promise.any(tries).catch(() => undefined)
    if (answer === undefined) {
      await pause(10)
      continue
    }
    const numbers = numbersIn(answer)
    received.push(...numbers)
    since = answer.next_batch
    if (wasOver && numbers.length === 0) return
  }
}
