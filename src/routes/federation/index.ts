import type { Endpoint } from '../../http/endpoint.ts'
import { backfillRoom } from './backfill-room.ts'
import { claimUserEncryptionKeys } from './claim-user-encryption-keys.ts'
import { exchangeOpenIdToken } from './exchange-open-id-token.ts'
import { exchangeThirdPartyInvite } from './exchange-third-party-invite.ts'
import { getContent } from './get-content.ts'
import { getContentThumbnail } from './get-content-thumbnail.ts'
import { getEvent } from './get-event.ts'
import { getEventAuthorization } from './get-event-authorization.ts'
import { getEventByTimestamp } from './get-event-by-timestamp.ts'
import { getMissingPreviousEvents } from './get-missing-previous-events.ts'
import { getPublicRooms } from './get-public-rooms.ts'
import { getRoomState } from './get-room-state.ts'
import { getRoomStateIds } from './get-room-state-ids.ts'
import { getServerKey } from './get-server-key.ts'
import { getSpaceHierarchy } from './get-space-hierarchy.ts'
import { getUserDevices } from './get-user-devices.ts'
import { getVersion } from './get-version.ts'
import { makeJoin } from './make-join.ts'
import { makeKnock } from './make-knock.ts'
import { makeLeave } from './make-leave.ts'
import { onBindThirdPartyIdentifier } from './on-bind-third-party-identifier.ts'
import { onBindThirdPartyIdentifierPost } from './on-bind-third-party-identifier-post.ts'
import { queryKeysOfServers } from './query-keys-of-servers.ts'
import { queryProfile } from './query-profile.ts'
import { queryPublicRooms } from './query-public-rooms.ts'
import { queryRoomDirectory } from './query-room-directory.ts'
import { queryServerKeys } from './query-server-keys.ts'
import { queryUserEncryptionKeys } from './query-user-encryption-keys.ts'
import { sendInviteV1 } from './send-invite-v1.ts'
import { sendInviteV2 } from './send-invite-v2.ts'
import { sendJoinV1 } from './send-join-v1.ts'
import { sendJoinV2 } from './send-join-v2.ts'
import { sendKnock } from './send-knock.ts'
import { sendLeaveV1 } from './send-leave-v1.ts'
import { sendLeaveV2 } from './send-leave-v2.ts'
import { sendTransaction } from './send-transaction.ts'

/** What other servers ask, in the order of the specification. */
export const federationEndpoints: readonly Endpoint[] = [
  getServerKey,
  queryServerKeys,
  queryKeysOfServers,
  getVersion,
  sendTransaction,
  getEventAuthorization,
  backfillRoom,
  getMissingPreviousEvents,
  getEvent,
  getRoomState,
  getRoomStateIds,
  getEventByTimestamp,
  makeJoin,
  sendJoinV1,
  sendJoinV2,
  makeKnock,
  sendKnock,
  sendInviteV1,
  sendInviteV2,
  makeLeave,
  sendLeaveV1,
  sendLeaveV2,
  exchangeThirdPartyInvite,
  onBindThirdPartyIdentifier,
  onBindThirdPartyIdentifierPost,
  getPublicRooms,
  queryPublicRooms,
  getSpaceHierarchy,
  queryRoomDirectory,
  queryProfile,
  exchangeOpenIdToken,
  getUserDevices,
  claimUserEncryptionKeys,
  queryUserEncryptionKeys,
  getContent,
  getContentThumbnail,
]
