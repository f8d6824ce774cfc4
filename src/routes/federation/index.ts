import type { Endpoint } from '../../http/endpoint.ts'
import { backfillRoom } from './events/backfill-room.ts'
import { getEvent } from './events/get-event.ts'
import { getEventAuthorization } from './events/get-event-authorization.ts'
import { getEventByTimestamp } from './events/get-event-by-timestamp.ts'
import { getMissingPreviousEvents } from './events/get-missing-previous-events.ts'
import { getRoomState } from './events/get-room-state.ts'
import { getRoomStateIds } from './events/get-room-state-ids.ts'
import { sendTransaction } from './events/send-transaction.ts'
import { getContent } from './media/get-content.ts'
import { getContentThumbnail } from './media/get-content-thumbnail.ts'
import { exchangeThirdPartyInvite } from './membership/exchange-third-party-invite.ts'
import { makeJoin } from './membership/make-join.ts'
import { makeKnock } from './membership/make-knock.ts'
import { makeLeave } from './membership/make-leave.ts'
import { onBindThirdPartyIdentifier } from './membership/on-bind-third-party-identifier.ts'
import { onBindThirdPartyIdentifierPost } from './membership/on-bind-third-party-identifier-post.ts'
import { sendInviteV1 } from './membership/send-invite-v1.ts'
import { sendInviteV2 } from './membership/send-invite-v2.ts'
import { sendJoinV1 } from './membership/send-join-v1.ts'
import { sendJoinV2 } from './membership/send-join-v2.ts'
import { sendKnock } from './membership/send-knock.ts'
import { sendLeaveV1 } from './membership/send-leave-v1.ts'
import { sendLeaveV2 } from './membership/send-leave-v2.ts'
import { claimUserEncryptionKeys } from './query/claim-user-encryption-keys.ts'
import { exchangeOpenIdToken } from './query/exchange-open-id-token.ts'
import { getPublicRooms } from './query/get-public-rooms.ts'
import { getSpaceHierarchy } from './query/get-space-hierarchy.ts'
import { getUserDevices } from './query/get-user-devices.ts'
import { getVersion } from './query/get-version.ts'
import { queryProfile } from './query/query-profile.ts'
import { queryPublicRooms } from './query/query-public-rooms.ts'
import { queryRoomDirectory } from './query/query-room-directory.ts'
import { queryUserEncryptionKeys } from './query/query-user-encryption-keys.ts'

/** The server-server interface, in the order of the specification. */
export const federationEndpoints: readonly Endpoint[] = [
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
