#include "elf_functions.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

enum {
    SECTIONS_MAX = 1000, /* these limits are many times the sizes in libssl and libgnutls */
    SEGMENTS_MAX = 100,
    SYMBOLS_MAX = 100000,
    SYMBOLS_AT_ONCE = 64,
    NAME_SIZE = 32, /* maximum size of a function's name with its final zero byte */
};

static bool elf_read(int fd, void *data, size_t size, uint64_t offset)
{
    return offset <= INT64_MAX && pread(fd, data, size, (off_t)offset) == (ssize_t)size;
}

/* Reads entry `index` of the table of sections. */
static bool elf_read_section(int fd, const Elf64_Ehdr *header, size_t index, Elf64_Shdr *section)
{
    return index < header->e_shnum && header->e_shoff <= INT64_MAX / 2 &&
           elf_read(fd, section, sizeof *section, header->e_shoff + index * sizeof *section);
}

/* Finds the table of dynamic symbols and the table of their names. */
static bool elf_find_tables(int fd, const Elf64_Ehdr *header, Elf64_Shdr *symbols, Elf64_Shdr *names)
{
    for (size_t i = 0; i < header->e_shnum && elf_read_section(fd, header, i, symbols); i++)
        if (symbols->sh_type == SHT_DYNSYM)
            return symbols->sh_entsize == sizeof(Elf64_Sym) && symbols->sh_offset <= INT64_MAX / 2 &&
                   symbols->sh_size / sizeof(Elf64_Sym) <= SYMBOLS_MAX &&
                   elf_read_section(fd, header, symbols->sh_link, names) && names->sh_type == SHT_STRTAB &&
                   names->sh_offset <= INT64_MAX / 2;
    return false;
}

/* Returns the offset in the file of an address in an executable segment; 0 if no such segment contains the address. */
static uint64_t elf_file_offset(int fd, const Elf64_Ehdr *header, uint64_t address)
{
    Elf64_Phdr segment;
    for (size_t i = 0;
         i < header->e_phnum && elf_read(fd, &segment, sizeof segment, header->e_phoff + i * sizeof segment); i++)
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz)
            return address - segment.p_vaddr + segment.p_offset;
    return 0;
}

/* Reads a symbol's name. Returns false if the symbol is not a function of this file. */
static bool elf_read_name(int fd, const Elf64_Sym *symbol, const Elf64_Shdr *names, char name[NAME_SIZE])
{
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
        symbol->st_name >= names->sh_size)
        return false;
    const ssize_t got = pread(fd, name, NAME_SIZE, (off_t)(names->sh_offset + symbol->st_name));
    return got > 0 && memchr(name, '\0', (size_t)got) != NULL; /* no searched name is longer */
}

bool elf_find_functions(int fd, const char *const names[], size_t count, uint64_t offsets[])
{
    static const unsigned char own_kind[] = {
        ELFMAG0, ELFMAG1,    ELFMAG2,
        ELFMAG3, ELFCLASS64, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB};
    Elf64_Ehdr header;
    Elf64_Shdr table, strings;
    Elf64_Sym symbols[SYMBOLS_AT_ONCE];
    char name[NAME_SIZE];
    memset(offsets, 0, count * sizeof *offsets);
    if (!elf_read(fd, &header, sizeof header, 0) || memcmp(header.e_ident, own_kind, sizeof own_kind) != 0 ||
        header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum > SECTIONS_MAX ||
        header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > SEGMENTS_MAX || header.e_phoff > INT64_MAX / 2 ||
        !elf_find_tables(fd, &header, &table, &strings))
        return false;
    const size_t total = table.sh_size / sizeof(Elf64_Sym);
    for (size_t first = 0; first < total; first += SYMBOLS_AT_ONCE) {
        const size_t some = total - first < SYMBOLS_AT_ONCE ? total - first : SYMBOLS_AT_ONCE;
        if (!elf_read(fd, symbols, some * sizeof *symbols, table.sh_offset + first * sizeof *symbols))
            return false;
        for (size_t i = 0; i < some; i++) {
            const bool is_function = elf_read_name(fd, &symbols[i], &strings, name);
            for (size_t n = 0; is_function && n < count; n++)
                if (strcmp(name, names[n]) == 0)
                    offsets[n] = elf_file_offset(fd, &header, symbols[i].st_value);
        }
    }
    return true;
}
