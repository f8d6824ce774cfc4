import {
  type ShowSasCallbacks,
  VerificationPhase,
  type VerificationRequest,
  type Verifier,
  VerifierEvent,
} from 'matrix-js-sdk/lib/crypto-api/index.js'
import { expect } from 'vitest'
import { waitUntil } from '../support/wait.ts'
import type { CryptoDevice } from './crypto-device.ts'

/** Two devices compare emoji and find them the same: verification by short authentication string. */
export async function verifyBySas(asked: CryptoDevice, request: VerificationRequest): Promise<void> {
  const received = await waitUntil(
    'the request for verification',
    () => asked.requests.find(({ transactionId }) => transactionId === request.transactionId),
    { timeoutMs: 40_000 },
  )
  await received.accept()
  await phaseOf(request, VerificationPhase.Ready)
  const asking = await request.startVerification('m.sas.v1')
  await phaseOf(received, VerificationPhase.Started)
  const answering = await waitUntil('the verifier of the other side', () => received.verifier)
  const shown = [emojiOf(asking), emojiOf(answering)]
  const ends = [asking.verify(), answering.verify()]
  const [first, second] = (await Promise.all(shown)) as [ShowSasCallbacks, ShowSasCallbacks]
  expect(first.sas.emoji).toEqual(second.sas.emoji)
  await Promise.all([first.confirm(), second.confirm()])
  await Promise.all(ends)
  await phaseOf(request, VerificationPhase.Done)
  await phaseOf(received, VerificationPhase.Done)
}

const phaseOf = (request: VerificationRequest, phase: VerificationPhase) =>
  waitUntil(`phase ${VerificationPhase[phase]}`, () => request.phase === phase, { timeoutMs: 40_000 })

const emojiOf = (verifier: Verifier): Promise<ShowSasCallbacks> =>
  new Promise((resolve) => void verifier.once(VerifierEvent.ShowSas, resolve))
