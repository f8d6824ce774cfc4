import { deviceMaker } from '../../test/keys/key-maker.ts'
import { mapConcurrently, openApi, register } from '../../test/support/api.ts'
import { newPrefix } from '../community.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'keys'
const DEVICES = 16
const KEYS_AT_ONCE = 50
/** Keys of each device. All are uploaded, and all are claimed. */
const KEYS_EACH = 900
const ASKING = 32
const ALGORITHM = 'signed_curve25519'

/** One-time keys uploaded by their devices, and claimed by others. */
export async function measureKeys(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  const api = openApi(target.baseUrl, { connections: ASKING })
  try {
    const word = newPrefix()
    const devices = await mapConcurrently(Array.from({ length: DEVICES }), 4, async (_, index) => {
      const account = await register(api, `${word}-${index}`, target.registrationToken)
      return { account, maker: deviceMaker(account) }
    })
    const upload = (device: (typeof devices)[number], body: object) =>
      api.call('POST', '/keys/upload', { token: device.account.token, body })
    await mapConcurrently(devices, 4, (device) =>
      upload(device, {
        device_keys: device.maker.identity(),
        fallback_keys: device.maker.named(`${ALGORITHM}:fallback`, { fallback: true }),
      }),
    )
    const batches = devices.flatMap((device) =>
      Array.from({ length: KEYS_EACH / KEYS_AT_ONCE }, () => ({ device, keys: device.maker.keys(KEYS_AT_ONCE) })),
    )
    const uploading = await repeat(target, `upload of ${KEYS_AT_ONCE}`, batches.length, async (number) => {
      const { device, keys } = batches[number]!
      await upload(device, { one_time_keys: keys })
    })
    const claims = DEVICES * KEYS_EACH
    const claiming = await repeat(target, 'claim', claims, async (number) => {
      const { userId, deviceId } = devices[number % DEVICES]!.account
      const body = { one_time_keys: { [userId]: { [deviceId]: ALGORITHM } } }
      await api.call('POST', '/keys/claim', { token: devices[(number + 1) % DEVICES]!.account.token, body })
    })
    return [uploading, claiming]
  } finally {
    await api.close()
    await target.close()
  }
}

async function repeat(target: Target, name: string, times: number, act: (number: number) => Promise<void>) {
  const latencies: number[] = []
  const begun = performance.now()
  const cost = await costOf(target, async () => {
    await mapConcurrently(Array.from({ length: times }), ASKING, async (_, number) => {
      const start = performance.now()
      await act(number)
      latencies.push(performance.now() - start)
    })
    return times
  })
  const perSecond = times / ((performance.now() - begun) / 1_000)
  return measurement({
    benchmark: BENCHMARK,
    variant: `${name}, ${ASKING} at once`,
    perSecond,
    ...latenciesOf(latencies),
    ...cost,
  })
}
