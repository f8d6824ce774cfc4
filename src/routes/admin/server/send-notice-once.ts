import { endpoint } from '../../../http/endpoint.ts'
import { NoticeBody, noticeOf } from './notice-body.ts'

export const sendNoticeOnce = endpoint(
  'PUT /_synapse/admin/v1/send_server_notice/{txnId}',
  { auth: 'admin', body: NoticeBody },
  async ({ requester, params, body, bodyOffence, path }, { admin }) => ({
    event_id: await admin.notices.send(requester, noticeOf(body, bodyOffence), { txnId: params.txnId, path }),
  }),
)
