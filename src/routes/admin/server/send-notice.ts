import { endpoint } from '../../../http/endpoint.ts'
import { NoticeBody, noticeOf } from './notice-body.ts'

export const sendNotice = endpoint(
  'POST /_synapse/admin/v1/send_server_notice',
  { auth: 'admin', body: NoticeBody },
  async ({ requester, body, bodyOffence, path, id }, { admin }) => ({
    event_id: await admin.notices.send(requester, noticeOf(body, bodyOffence), { txnId: id, path: `${path} ${id}` }),
  }),
)
