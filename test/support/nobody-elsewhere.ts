import type { RemoteDeviceLists } from '../../src/domain/keys/device-lists.ts'

/** For a server that knows no other. */
export const NOBODY_ELSEWHERE: RemoteDeviceLists = {
  serversIn: async () => [],
  queue: async () => {},
  queued: () => {},
}
