import { type Account, type Api, mapConcurrently, openApi } from '../../test/support/api.ts'
import { newPrefix, registerPeople } from '../community.ts'
import { latenciesOf, type Measurement, measurement, now } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'to-device'
const RECIPIENTS = 1_000
const SENDERS = 64
/** As long as a room key that is encrypted for one device. */
const CONTENT = { algorithm: 'm.olm.v1.curve25519-aes-sha2', sender_key: 'k'.repeat(43), ciphertext: 'c'.repeat(900) }

/** Messages from device to device: a room key to everybody in a large room, and many senders with one message each. */
export async function measureToDevice(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  try {
    const api = openApi(target.baseUrl, { connections: SENDERS })
    const people = await registerPeople(api, target, RECIPIENTS)
    const everybody = Object.fromEntries(people.map(({ userId, deviceId }) => [userId, { [deviceId]: CONTENT }]))
    const toAll = () => everybody
    const toOne = (sender: number) => {
      const { userId, deviceId } = people[RECIPIENTS - 1 - sender]!
      return { [userId]: { [deviceId]: CONTENT } }
    }
    const measured = [
      await measureVariant(
        target,
        api,
        people.slice(0, 1),
        toAll,
        `1 sender, ${RECIPIENTS} recipients a call`,
        options,
      ),
      await measureVariant(
        target,
        api,
        people.slice(0, SENDERS),
        toOne,
        `${SENDERS} senders, 1 recipient a call`,
        options,
      ),
    ]
    await api.close()
    return measured
  } finally {
    await target.close()
  }
}

async function measureVariant(
  target: Target,
  api: Api,
  senders: readonly Account[],
  messagesOf: (sender: number) => object,
  variant: string,
  { seconds }: BenchOptions,
): Promise<Measurement> {
  const word = newPrefix()
  const took: number[] = []
  const begun = now()
  const cost = await costOf(target, async () => {
    await mapConcurrently(senders, senders.length, async ({ token }, sender) => {
      const body = { messages: messagesOf(sender) }
      for (let call = 0; now() - begun < seconds * 1000; call++) {
        const sent = now()
        await api.call('PUT', `/sendToDevice/m.room.encrypted/${word}-${sender}-${call}`, { token, body })
        took.push(now() - sent)
      }
    })
    return took.length
  })
  const perSecond = took.length / ((now() - begun) / 1000)
  return measurement({ benchmark: BENCHMARK, variant, perSecond, ...latenciesOf(took), ...cost })
}
