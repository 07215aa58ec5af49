/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What lines.c uses of QEMU's interface for TCG plugins, as its documentation
 * describes it: Debian 12 has QEMU, but not its header.  QEMU 7.2 speaks
 * version 1 of it, QEMU 10 version 4, and both take what is declared here, but
 * for qemu_plugin_insn_data().
 */
#ifndef LINES_QEMU_API_H
#define LINES_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

/* It goes on, with what is not used here. */
typedef struct qemu_info_t {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
} qemu_info_t;

enum qemu_plugin_cb_flags {
	QEMU_PLUGIN_CB_NO_REGS,
};

enum qemu_plugin_mem_rw {
	QEMU_PLUGIN_MEM_RW = 3,
};

typedef void (*qemu_simple_cb)(qemu_plugin_id_t id);
typedef void (*qemu_tb_trans_cb)(qemu_plugin_id_t id,
				 struct qemu_plugin_tb *tb);
typedef void (*qemu_exec_cb)(unsigned int cpu, void *data);
typedef void (*qemu_mem_cb)(unsigned int cpu, qemu_plugin_meminfo_t info,
			    uint64_t vaddr, void *data);

void qemu_plugin_reset(qemu_plugin_id_t id, qemu_simple_cb cb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   qemu_tb_trans_cb cb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  qemu_exec_cb cb,
					  enum qemu_plugin_cb_flags flags,
					  void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    qemu_exec_cb cb,
					    enum qemu_plugin_cb_flags flags,
					    void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      qemu_mem_cb cb,
				      enum qemu_plugin_cb_flags flags,
				      enum qemu_plugin_mem_rw rw, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t n);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info,
						  uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *addr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *addr);

/*
 * Until version 2 it takes the instruction and returns its bytes; since version
 * 3 it copies them and returns how many these are.
 */
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to,
			     size_t size);

#endif /* LINES_QEMU_API_H */
