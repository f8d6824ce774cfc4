import { accountDataPart } from './account-data.ts'
import { e2eePart } from './e2ee.ts'
import { createDeviceChanges, type ExtensionPart, type ExtensionScene } from './extension.ts'
import { presencePart } from './presence.ts'
import { profilesPart } from './profiles.ts'
import { receiptsPart } from './receipts.ts'
import { stickyEventsPart } from './sticky-events.ts'
import { threadSubscriptionsPart } from './thread-subscriptions.ts'
import { toDevicePart } from './to-device.ts'
import { typingPart } from './typing.ts'

/** What the extensions of a request have to say. */
export function extensionParts(
  given: Omit<ExtensionScene, 'deviceChanges'>,
): readonly ExtensionPart[] | Promise<readonly ExtensionPart[]> {
  const { look, rooms, joined, departed, receipts: ofRooms } = given
  const scene: ExtensionScene = {
    look,
    rooms,
    joined,
    departed,
    receipts: ofRooms,
    deviceChanges: createDeviceChanges(given),
  }
  const { toDevice, e2ee, accountData, receipts, typing, threadSubscriptions, stickyEvents, presence, profiles } =
    scene.look.sliding.extensions
  const parts = [
    toDevice && toDevicePart(scene, toDevice),
    e2ee && e2eePart(scene, e2ee),
    accountData && accountDataPart(scene, accountData),
    receipts && receiptsPart(scene, receipts),
    typing && typingPart(scene, typing),
    threadSubscriptions && threadSubscriptionsPart(scene, threadSubscriptions),
    stickyEvents && stickyEventsPart(scene, stickyEvents),
    presence && presencePart(scene, presence),
    profiles && profilesPart(scene, profiles),
  ]
  if (!parts.some((part) => part instanceof Promise)) return found(parts as readonly (ExtensionPart | undefined)[])
  return Promise.all(parts).then(found)
}

function found(parts: readonly (ExtensionPart | undefined)[]): readonly ExtensionPart[] {
  return parts.filter((part): part is ExtensionPart => part !== undefined)
}
