// The small files of a fresh /etc: enough for programs to find root, localhost and nothing else.

export const ETC_FILES: Readonly<Record<string, string>> = {
  passwd: "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
  group: "root:x:0:\nnogroup:x:65534:\n",
  hosts: "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n",
  hostname: "sandbox\n",
  "nsswitch.conf":
    "passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\nprotocols: files\n",
};
